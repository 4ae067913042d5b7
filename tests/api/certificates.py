"""A small authority for a test: certificates made by the ``openssl`` command, as an administrator would."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificate:
    """PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Signs what it is asked to."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.folder = folder
        self.certificate = folder / f"{name}.pem"
        self._key = folder / f"{name}.key"
        self._openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"),
            *("-subj", f"/CN={name}", "-keyout", str(self._key), "-out", str(self.certificate)),
        )

    def issue(self, common_name: str, file_name: str = "", alternative: str = "") -> Certificate:
        """``alternative`` as openssl takes it: ``DNS:localhost,IP:127.0.0.1``."""
        file_name = file_name or common_name
        issued = Certificate(self.folder / f"{file_name}.pem", self.folder / f"{file_name}.key")
        request, extensions = self.folder / f"{file_name}.csr", self.folder / f"{file_name}.ext"
        extensions.write_text(
            f"subjectAltName={alternative}\n" if alternative else "basicConstraints=CA:FALSE\n"
        )
        self._openssl(
            *("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-subj", f"/CN={common_name}", "-keyout", str(issued.key), "-out", str(request)),
        )
        self._openssl(
            *("x509", "-req", "-days", "2", "-in", str(request), "-extfile", str(extensions)),
            *("-CA", str(self.certificate), "-CAkey", str(self._key), "-CAcreateserial"),
            *("-out", str(issued.certificate)),
        )
        return issued

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)
