"""The bill of materials of a package, as CycloneDX in JSON. Equal contents give equal bytes and number."""

import datetime
import uuid
from typing import Final

from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.component_evidence import ComponentEvidence, Occurrence
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from describe.inventory import Inventory, Shipped

_NONE: Final = uuid.UUID(int=0)
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""As the kernel names them -> as Debian does."""


def written(inventory: Inventory, package: str, version: str, architecture: str, made_at_s: int) -> str:
    """The document of the package of that name. ``made_at_s`` is the time of its sources."""
    root = Component(
        name=package,
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=package,
        licenses=[_license(inventory.own.license)],
        copyright="; ".join(inventory.own.copyright),
        purl=PackageURL(
            "generic", None, package, version, {"arch": ARCHITECTURES[architecture], "os": "linux"}
        ),
    )
    shipped = [each for each in inventory.shipped if each.name != package]
    components = {_reference(each): _component(each) for each in shipped}
    bom = Bom(
        metadata=BomMetaData(
            component=root, timestamp=datetime.datetime.fromtimestamp(made_at_s, datetime.UTC)
        ),
        components=components.values(),
        serial_number=_NONE,
    )
    by_name = {each.name: components[_reference(each)] for each in shipped if each.of is None}
    for each in shipped:
        holder = by_name[each.of] if each.of is not None else root
        bom.register_dependency(holder, [components[_reference(each)]])
    bom.serial_number = uuid.uuid5(_NONE, _json(bom))
    return _json(bom)


def _json(bom: Bom) -> str:
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _component(shipped: Shipped) -> Component:
    return Component(
        name=shipped.name,
        version=shipped.version,
        type=ComponentType.LIBRARY,
        bom_ref=_reference(shipped),
        licenses=[_license(shipped.row.license)],
        copyright="; ".join(shipped.row.copyright),
        description=shipped.row.comment and " ".join(shipped.row.comment.split()),
        purl=PackageURL.from_string(shipped.purl) if shipped.purl else None,
        evidence=ComponentEvidence(
            # Without names the library would put them in another order each time.
            occurrences=[
                Occurrence(bom_ref=f"{_reference(shipped)}:{place}", location=place)
                for place in shipped.objects
            ]
        ),
    )


def _license(expression: str) -> LicenseExpression | DisjunctiveLicense:
    if " " in expression:
        return LicenseExpression(expression)
    return DisjunctiveLicense(id=expression)


def _reference(shipped: Shipped) -> str:
    """Two may bring the same thing along."""
    return f"{shipped.of + '/' if shipped.of else ''}{shipped.name}@{shipped.version}"
