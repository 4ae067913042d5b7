"""Generates ``nodeagent/messages/pb`` and ``nodeagent/client/generated``: ``python -m
nodeagent.messages.generate``.

Needed at build time only (grpcio-tools). Of the API's services only the messages are generated: which method
belongs to which handler is read from the service descriptors (``rpc_binding.py``), so that no list is kept
twice.
"""

import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from nodeagent.messages import generate_client

PROTO_ROOT = Path(__file__).parents[2] / "proto"
TARGET = Path(__file__).parent / "pb"
PACKAGE = "nodeagent.messages.pb"

_INIT = '"""Generated from proto/ by nodeagent.messages.generate."""\n'


class GenerateError(Exception):
    """The proto files are missing or protoc refuses them; the message names the file and the reason."""


def sources(proto_root: Path = PROTO_ROOT) -> list[Path]:
    """The proto files, sorted. Raises ``GenerateError`` if there are none."""
    found = sorted(proto_root.glob("nodeagent/v1/*.proto"))
    if not found:
        raise GenerateError(f"{proto_root}/nodeagent/v1: no .proto files; run this in a source tree")
    return found


def is_fresh(target: Path = TARGET, proto_root: Path = PROTO_ROOT) -> bool:
    """Whether every output is there and newer than every proto file and than this script."""
    inputs = [*sources(proto_root), Path(__file__), Path(generate_client.__file__), generate_client.SOURCE]
    outputs = [target / "__init__.py", *(generate_client.TARGET / name for name in generate_client.MODULES)]
    for source in sources(proto_root):
        outputs += [target / f"{source.stem}_pb2.py", target / f"{source.stem}_pb2.pyi"]
    if not all(output.exists() for output in outputs):
        return False
    return min(path.stat().st_mtime_ns for path in outputs) >= max(path.stat().st_mtime_ns for path in inputs)


def generate(target: Path = TARGET, proto_root: Path = PROTO_ROOT) -> None:
    """Replaces ``target`` by freshly generated modules; on an error the old ones stay."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".pb-") as scratch:
        raw, ready = Path(scratch) / "raw", Path(scratch) / "ready"
        raw.mkdir()
        ready.mkdir()
        _protoc(proto_root, raw)
        for module in sorted(raw.glob("nodeagent/v1/*_pb2.py*")):
            (ready / module.name).write_text(_flattened(module.read_text()))
        (ready / "__init__.py").write_text(_INIT)
        if target.exists():
            shutil.rmtree(target)
        ready.rename(target)


def _protoc(proto_root: Path, out: Path) -> None:
    try:
        from grpc_tools import protoc
    except ImportError as error:
        raise GenerateError(
            f"grpcio-tools is needed to generate {PACKAGE}: pip install grpcio-tools"
        ) from error
    files = sources(proto_root)
    well_known = resources.files("grpc_tools") / "_proto"
    arguments = ["protoc", f"-I{proto_root}", f"-I{well_known}", f"--python_out={out}", f"--pyi_out={out}"]
    if protoc.main([*arguments, *map(str, files)]) != 0:
        raise GenerateError(f"protoc refused {proto_root}; its message is above")


def _flattened(text: str) -> str:
    """The modules live in one package of ours, not in a top-level ``nodeagent.v1``."""
    return text.replace("from nodeagent.v1 import", f"from {PACKAGE} import")


def main(arguments: Sequence[str]) -> int:
    """Generates unless everything is fresh; ``--force`` generates anyway."""
    try:
        if "--force" not in arguments and is_fresh():
            return 0
        generate()
        generate_client.generate(PROTO_ROOT, sources())
    except (GenerateError, generate_client.ClientGenerateError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
