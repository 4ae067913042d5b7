"""A small tree as it is laid out for a package, with the distributions and objects that a test asks for."""

from pathlib import Path

from describe.inventory import PLACE

SITE = "python/lib/python3.13/site-packages"
ELF = b"\x7fELF"


def distribution(root: Path, name: str, version: str, *objects: str, license_: str | None = None) -> None:
    """One distribution with a module and these objects, whose contents are ``ELF`` alone."""
    module = name.replace("-", "_")
    folder = root / SITE / f"{module}-{version}.dist-info"
    folder.mkdir(parents=True)
    told = f"License-Expression: {license_}\n" if license_ else ""
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{told}")
    files = [f"{module}/__init__.py", *objects, f"{folder.name}/METADATA", f"{folder.name}/RECORD"]
    (folder / "RECORD").write_text("".join(f"{each},,\n" for each in files))
    put(root, f"{SITE}/{module}/__init__.py", b"")
    for each in objects:
        put(root, f"{SITE}/{each}", ELF)


def put(root: Path, place: str, content: bytes) -> str:
    """The place on the node."""
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return f"{PLACE}/{place}"
