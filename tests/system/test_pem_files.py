"""Files of certificates that cannot be used are named with their option."""

import ssl
import subprocess
from pathlib import Path

import pytest

from nodeagent.system.pem_files import PemError, use_chain
from tests.api.certificates import Authority
from tests.waiting import WAIT_LIMIT_S


def test_a_key_with_a_passphrase_is_refused_without_a_question(tmp_path: Path) -> None:
    own = Authority(tmp_path).issue("gpu-17")
    protected = tmp_path / "protected.key"
    subprocess.run(
        ["openssl", "pkey", "-in", own.key, "-out", protected, "-aes256", "-passout", "pass:hunter2"],
        check=True,
        timeout=WAIT_LIMIT_S,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with pytest.raises(PemError) as refused:
        use_chain(context, ("--cert", own.certificate), ("--key", protected))
    assert str(refused.value) == (
        f"--cert {own.certificate}, --key {protected}: they cannot be used together:"
        " the key is protected by a passphrase; give one without"
    )
