"""Until when certificates are valid: as openssl reads them, and again when their files change."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nodeagent.api.access.certificates import certificates_in
from nodeagent.api.access.tls import ServerCertificateFiles
from nodeagent.metrics.certificates import CertificateTimes
from tests.api.certificates import Authority

Shown = list[tuple[str, str, float]]


def as_openssl_reads(certificate: Path) -> tuple[str, float, float]:
    """Serial number in hexadecimal, the beginning and the end of its time."""
    ran = subprocess.run(
        ["openssl", "x509", "-in", certificate, "-noout", "-serial", "-startdate", "-enddate"],
        capture_output=True,
        text=True,
        check=True,
    )
    serial, *times = (line.partition("=")[2] for line in ran.stdout.splitlines())
    begin, end = (datetime.strptime(each, "%b %d %H:%M:%S %Y GMT").replace(tzinfo=UTC) for each in times)
    return serial.lower().lstrip("0"), begin.timestamp(), end.timestamp()


def made(folder: Path, *arguments: str) -> Path:
    """A certificate that signs itself."""
    certificate = folder / "own.pem"
    key = (
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-keyout",
        str(folder / "own.key"),
    )
    subprocess.run(
        ["openssl", "req", "-x509", *key, "-out", str(certificate), *arguments],
        check=True,
        capture_output=True,
    )
    return certificate


@pytest.mark.parametrize(
    ("arguments", "common_name"),
    [
        (("-subj", "/O=Example/CN=gpu-17.example.org", "-days", "2"), "gpu-17.example.org"),
        (("-subj", "/CN=far", "-days", "20000"), "far"),
        (("-subj", "/O=Example", "-days", "2"), ""),
        (("-utf8", "-subj", "/CN=节点", "-days", "2"), "节点"),
        (("-subj", "/CN=old", "-days", "2", "-set_serial", "0x00ff"), "old"),
    ],
    ids=["plain", "after-2049", "no-name", "utf-8", "serial"],
)
def test_a_certificate_is_read_as_openssl_reads_it(
    tmp_path: Path, arguments: tuple[str, ...], common_name: str
) -> None:
    certificate = made(tmp_path, *arguments)
    (read,) = certificates_in(certificate.read_text())
    assert (read.serial, read.not_before_s, read.not_after_s) == as_openssl_reads(certificate)
    assert read.common_name == common_name


def test_text_around_certificates_is_skipped_and_a_damaged_one_is_an_error(tmp_path: Path) -> None:
    certificate = made(tmp_path, "-subj", "/CN=a", "-days", "2")
    pem = certificate.read_text()
    assert [each.common_name for each in certificates_in(f"root of 2026\n{pem}\n# and\n{pem}")] == ["a", "a"]
    begin, *lines, end = pem.splitlines()
    with pytest.raises(ValueError, match="ends in its middle"):
        certificates_in("\n".join((begin, lines[0], end)))


def shown(times: CertificateTimes) -> Shown:
    family, _ = times.families()
    return [(each.labels["use"], each.labels["common_name"], each.value) for each in family.samples]


def test_the_chain_of_the_server_and_each_client_authority_have_a_series(tmp_path: Path) -> None:
    first, second = Authority(tmp_path, "first"), Authority(tmp_path, "second")
    own = first.issue("gpu-17")
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(first.certificate.read_text() + second.certificate.read_text())
    times = CertificateTimes(
        ServerCertificateFiles(certificate=own.certificate, key=own.key, client_ca=bundle)
    )
    assert shown(times) == [
        ("server", "gpu-17", as_openssl_reads(own.certificate)[2]),
        ("client_ca", "first", as_openssl_reads(first.certificate)[2]),
        ("client_ca", "second", as_openssl_reads(second.certificate)[2]),
    ]


def test_a_renewed_certificate_is_shown_once_its_key_has_come_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    old, new = authority.issue("old"), authority.issue("new")
    times = CertificateTimes(
        ServerCertificateFiles(certificate=old.certificate, key=old.key, client_ca=authority.certificate)
    )
    assert shown(times)[0][:2] == ("server", "old")
    new.certificate.replace(old.certificate)
    assert shown(times)[0][:2] == ("server", "old")
    new.key.replace(old.key)
    assert shown(times)[0][:2] == ("server", "new")
    old.certificate.unlink()
    assert shown(times)[0][:2] == ("server", "new")


def test_without_a_listener_there_are_none() -> None:
    assert shown(CertificateTimes(None)) == []
