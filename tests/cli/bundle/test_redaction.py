"""Which secrets are removed from the texts of an archive, and which texts are left as they are."""

import pytest

from nodeagent.cli.bundle.redaction import MARK, redacted, secrets_in

SECRET = "s3cr3t-Value.42"

HOLDING = (
    f'password = "{SECRET}"',
    f"webhook_secret='{SECRET}'",
    f'tokens = ["{SECRET}", "b"]',
    f'secret = """\n{SECRET}\n"""',
    f"passphrase: two words {SECRET}",
    f'{{"api_key": "{SECRET}"}}',
    f'{{"MESSAGE":"{{\\"token\\": \\"{SECRET}\\"}}"}}',
    f'{{"password":"a\\"{SECRET}"}}',
    f'Environment="X_TOKEN=with blanks {SECRET}"',
    f"Environment=DB_PWD={SECRET}",
    f"SetCredential=db:{SECRET}",
    f"# the old password: {SECRET}",
    f"Nov 28 10:00:00 h nodeagent[1]: refused: token={SECRET}, next",
    f"report --password {SECRET} --node a",
    f"BMC_PASS={SECRET}",
    f'pass = "{SECRET}"',
    f"ipmitool -I lanplus -H bmc -U root -P {SECRET} chassis status",
    f'command = ["ipmitool", "-H", "bmc", "-P", "{SECRET}", "sdr"]',
    f"ipmi-sensors -h bmc -u root -p {SECRET}",
    f"sshpass -p{SECRET} ssh host",
    f"curl -k -u root:{SECRET} https://bmc/redfish",
    f'curl -H "Authorization: Bearer {SECRET}"',
    f"Cookie: session={SECRET}",
    f"http://user:{SECRET}@host/x",
    f"//nas/x /mnt cifs rw,username=a,password={SECRET},x 0 0",
    f"https://hooks.slack.com/services/{SECRET}",
    f"https://bucket/x?X-Amz-Signature={SECRET}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
    f"a\\n-----BEGIN OPENSSH PRIVATE KEY-----\\n{SECRET}\\n-----END OPENSSH PRIVATE KEY-----",
    f"its beginning was cut off\n{SECRET}\n-----END PRIVATE KEY-----\n",
    f"-----BEGIN PRIVATE KEY-----\nits end was cut off\n{SECRET}",
)


@pytest.mark.parametrize("text", HOLDING)
def test_a_secret_is_removed_and_the_place_is_marked(text: str) -> None:
    clean = redacted(text)
    assert (SECRET in clean, MARK in clean) == (False, True)


@pytest.mark.parametrize(
    "token",
    [
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "hf_abcdefghijklmnopqrstuvwxyz",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    ],
)
def test_a_token_of_a_known_form_is_removed_without_a_name(token: str) -> None:
    assert redacted(f"sent {token} to it") == f"sent {MARK} to it"


@pytest.mark.parametrize(
    "text",
    [
        'tls_key = "/etc/nodeagent/tls/key.pem"',
        "token_file=/run/secrets/token",
        'password = ""',
        "PWD=/root/work",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        '{"key":"agent.socket","value":"/run/nodeagent/nodeagent.sock"}',
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
    ],
)
def test_what_is_no_secret_is_left_as_it_is(text: str) -> None:
    assert redacted(text) == text


def test_a_secret_that_one_text_names_is_removed_from_another_that_does_not() -> None:
    secrets = set(secrets_in(f'[webhook]\nsecret = "{SECRET}"\nport = 80\n'))
    assert secrets == {SECRET}
    assert redacted(f"sent {SECRET} to it", secrets) == f"sent {MARK} to it"
