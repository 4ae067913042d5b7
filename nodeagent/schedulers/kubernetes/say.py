"""What the log says of an order, and of what the bridge has come to know. Pure.

Each thing is said once: what stays as it is is not repeated.
"""

from collections.abc import Iterable

from nodeagent.schedulers.kubernetes.node_status import is_ours
from nodeagent.schedulers.kubernetes.orders import Create, Delete, Order, Replace, SetCondition, SetTaints
from nodeagent.schedulers.kubernetes.state import State


def done(order: Order) -> str:
    """ "" for what only reads."""
    match order:
        case SetTaints(taints=taints):
            ours = next((each for each in taints if is_ours(each)), None)
            if ours is None:
                return "removed the taint from the Node"
            return f"tainted the Node: {ours['key']}={ours.get('value', '')}:{ours['effect']}"
        case SetCondition(condition=condition):
            return f"{condition['type']} is {condition['status']}: {condition['message']}"
        case Create(target=target) | Replace(target=target):
            return f"wrote the {target}"
        case Delete(target=target):
            return f"deleted the {target}"
        case _:
            return ""


def learnt(before: State, after: State) -> Iterable[str]:
    """Who else writes, and what does not work."""
    for target, known in after.infos.items():
        is_foreign = known.found is not None and not known.found.is_ours
        earlier = before.infos[target].found
        was_foreign = earlier is not None and not earlier.is_ours
        if is_foreign and not was_foreign:
            yield (
                f"the {target} is another's, as MindCluster's own plug-in writes it: left alone;"
                " delete it once that plug-in is gone, and it is written from here"
            )
    if after.noded and not before.noded:
        yield "MindCluster's DaemonSet noded is installed: its ConfigMap mindx-dl-nodeinfo is left alone"
    if after.node_is_fresh and after.node is None and (before.node is not None or not before.node_is_fresh):
        yield "there is no Node of this name; check [kubernetes] node, or wait until the kubelet registers it"
    for target, trouble in after.troubles.items():
        known_trouble = before.troubles.get(target)
        if known_trouble is None or known_trouble.words != trouble.words:
            yield f"{target}: {trouble.words}; it is tried again"
    for target in before.troubles.keys() - after.troubles.keys():
        yield f"{target}: works again"
