"""What both dashboards are made of: variables, queries, and panels of three kinds in one style.

Every query selects by the variables cluster, job and instance. A site without a label ``cluster`` has the
value "All" there, which matches its absence too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DatasourceVariable,
    FieldColor,
    QueryVariable,
    ThresholdsConfig,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.models import common, units
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
    Threshold,
    ThresholdsMode,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
NODES: Final = 'cluster=~"$cluster",job=~"$job",instance=~"$instance"'
"""The labels that each query selects by."""

PART: Final = "id, vendor, product, serial, pci, slot, firmware, driver, group"
"""The labels of ``nodeagent_device_info`` that other metrics do not have."""

_COLORS: Final = {"ALLOW": "green", "UNKNOWN": "purple", "NO_NEW_JOBS": "orange", "ISOLATE": "red"}
"""Of verdicts."""

_NODE_LINK: Final = {
    "title": "This node",
    "url": "/d/nodeagent-node?var-datasource=${datasource}&var-instance=${__value.raw}",
}
NODE_COLUMN: Final = "Node"
"""The title of a column with names of nodes: each is a link to the dashboard of the node."""

WIDTH: Final = 24
"""Of a row, in Grafana's units."""

AnyPanel = TypeVar("AnyPanel", Stat, Table, Timeseries)


@dataclass(frozen=True, slots=True)
class Query:
    """``legend`` as Grafana reads it: ``{{device}}`` is the label's value."""

    expression: str
    legend: str = ""


def of(metric: str, *labels: str) -> str:
    """The metric on the chosen nodes; ``labels`` are further ones, such as ``kind="chip"``."""
    return f"{metric}{{{','.join((NODES, *labels))}}}"


def with_part(expression: str, *own: str) -> str:
    """The expression, whose own labels these are, with product, serial number, slot and PCI address."""
    ignored = ", ".join((*own, PART))
    return f"({expression}) * ignoring ({ignored}) group_left (product, serial, slot, pci) " + of(
        "nodeagent_device_info"
    )


def dashboard(title: str, uid: str, description: str, *, several: bool) -> Dashboard:
    """An empty one with its variables; ``several``: it may show several nodes at once."""
    return (
        Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["nodeagent"])
        .refresh("1m")
        .time("now-6h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_variable("cluster", "", several=True))
        .with_variable(_variable("job", 'cluster=~"$cluster"', several=True))
        .with_variable(_variable("instance", 'cluster=~"$cluster",job=~"$job"', several=several))
    )


def _variable(name: str, selected_by: str, *, several: bool) -> QueryVariable:
    """The values of a label of the nodes that there are."""
    variable = (
        QueryVariable(name)
        .label(name.capitalize())
        .datasource(SOURCE)
        .query(f"label_values(nodeagent_build_info{{{selected_by}}}, {name})")
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
        .multi(several)
        .include_all(several)
    )
    return variable.all_value(".*") if several else variable


def stat(
    title: str,
    *queries: Query,
    unit: str = units.Short,
    bad_from: float | None = None,
    names: bool = False,
    width: int = 4,
    description: str = "",
) -> Stat:
    """Numbers of now, or with ``names`` only the names of the series. From ``bad_from`` on they are red."""
    panel = _with_queries(Stat(), title, description, queries, instant=True).height(4).span(width).unit(unit)
    panel.reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
    panel.graph_mode(common.BigValueGraphMode.NONE)
    panel.text_mode(common.BigValueTextMode.NAME if names else common.BigValueTextMode.AUTO)
    panel.thresholds(_red_from(bad_from)).color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS))
    return _colored(panel).no_value("none")


def timeseries(
    title: str,
    *queries: Query,
    unit: str = units.Short,
    most: float | None = None,
    width: int = 8,
    description: str = "",
) -> Timeseries:
    """Lines over time, the legend as a table with the last and the greatest value."""
    panel = _with_queries(Timeseries(), title, description, queries, instant=False).height(8).span(width)
    panel.unit(unit).min(0).fill_opacity(0).show_points(common.VisibilityMode.NEVER)
    panel.legend(
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.TABLE)
        .placement(common.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs(["lastNotNull", "max"])
    )
    panel.tooltip(
        common_builders.VizTooltipOptions()
        .mode(common.TooltipDisplayMode.MULTI)
        .sort(common.SortOrder.DESCENDING)
    )
    return _colored(panel.max(most) if most is not None else panel)


def table(
    title: str,
    *queries: Query,
    columns: Sequence[tuple[str, str]],
    value: str = "",
    unit: str = units.DateTimeFromNow,
    width: int = WIDTH,
    height: int = 8,
    description: str = "",
) -> Table:
    """Rows of now. ``columns`` are labels with their titles, in order; all other labels are hidden.

    The value of the last query is the column ``value``, in ``unit``. Rows of several queries with the same
    labels are one; the values of the others are hidden.
    """
    panel = _with_queries(Table(), title, description, queries, instant=True).height(height).span(width)
    last = "Value" if len(queries) == 1 else f"Value #{_ref(len(queries) - 1)}"
    shown = [*columns, (last, value)] if value else list(columns)
    panel.show_header(True)
    panel.with_transformation(DataTransformerConfig(id_val="merge", options={}))
    panel.with_transformation(
        DataTransformerConfig(
            id_val="filterFieldsByName", options={"include": {"names": [label for label, _ in shown]}}
        )
    )
    panel.with_transformation(
        DataTransformerConfig(
            id_val="organize",
            options={
                "excludeByName": {},
                "indexByName": {label: place for place, (label, _) in enumerate(shown)},
                "renameByName": dict(shown),
            },
        )
    )
    if value:
        panel.override_by_name(value, [DynamicConfigValue(id_val="unit", value=unit)])
    panel.override_by_name(NODE_COLUMN, [DynamicConfigValue(id_val="links", value=[_NODE_LINK])])
    return panel.no_value("none")


def _with_queries(
    panel: AnyPanel, title: str, description: str, queries: Sequence[Query], *, instant: bool
) -> AnyPanel:
    panel.title(title).description(description).datasource(SOURCE)
    for place, query in enumerate(queries):
        target = Dataquery().expr(query.expression).ref_id(_ref(place)).datasource(SOURCE)
        if isinstance(panel, Table):
            target.format(PromQueryFormat.TABLE)
        elif query.legend:
            target.legend_format(query.legend)
        panel.with_target(target.instant() if instant else target.range())
    return panel


def _colored(panel: AnyPanel) -> AnyPanel:
    """Series named after a verdict have its color."""
    for verdict, color in _COLORS.items():
        fixed = {"mode": "fixed", "fixedColor": color}
        panel.override_by_name(verdict, [DynamicConfigValue(id_val="color", value=fixed)])
    return panel


def _ref(place: int) -> str:
    return "ABCDEFGHIJ"[place]


def _red_from(bad_from: float | None) -> ThresholdsConfig:
    steps = [Threshold(color="green", value=None)]
    if bad_from is not None:
        steps.append(Threshold(color="red", value=bad_from))
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)
