"""Which devices another system may report by which names, with which codes; and who ends a fault."""

from dataclasses import replace

import pytest

from nodeagent.api.control import public_faults
from nodeagent.api.refusal import Refusal, Status
from nodeagent.api.request_fields import DeviceNames
from nodeagent.core.model import Assertion, Kind, Level, Report
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from tests.api.control.reported import CCAE, NODE, device
from tests.core.build import catalog, row

GPU = "GPU-4d30fd1c-9f0a-4b55-8a6e-0123456789ab"
MIG = "MIG-4d30fd1c-9f0a-5b55-8a6e-0123456789ab"
DEVICES = (
    device("node", Kind.NODE),
    replace(device("gpu3"), id=GPU, attributes={"pci": "0000:3b:00.0", "mig": "enabled"}),
    replace(device("gpu4"), id="GPU-4", attributes={"pci": "0000:5d:00.0", "mig": "disabled"}),
    replace(device("gpu5"), id="GPU-5", attributes={"mig": "enabled", "mig_devices": f"gi1={MIG},gi1=MIG-b"}),
    replace(device("gpu3/gi2", Kind.INSTANCE), id=f"{GPU}/gi2"),
    replace(device("ib0", Kind.LINK), attributes={"pci": "0000:19:00.0", "rdma": "mlx5_0"}),
    replace(device("dimm:A1@mc0/dimm0", Kind.HOST), attributes={"label": "A1", "place": "mc0/dimm0"}),
    replace(device("dimm:A1@mc1/dimm0", Kind.HOST), attributes={"label": "A1", "place": "mc1/dimm0"}),
    device("ub0", Kind.UNIFIEDBUS),
)
SITE = catalog(
    row("010001001", Level.SUB_HEALTH, kind=Kind.PUBLIC),
    row("SITE_NCCL", Level.SEPARATE_NPU),
    row("SITE_SLOW.*", Level.SUB_HEALTH),
    row("SITE_PORT", Level.SUB_HEALTH, kind=Kind.LINK),
    row("SITE_DIMM", Level.SUB_HEALTH, kind=Kind.HOST),
    row("SITE_NODE", Level.SEPARATE_FAULT, kind=Kind.NODE),
    row("SITE_SWITCH", Level.RESET_FAULT, kind=Kind.UNIFIEDBUS),
    row("store_damaged", Level.NOT_HANDLE, kind=Kind.HOST, vendor="nodeagent"),
)
ANY = replace(NODE, devices=DeviceNames(DEVICES), catalog=SITE)


def named(
    code: str, *names: str, assertion: types_pb2.Assertion = types_pb2.ASSERTION_OCCUR
) -> pb.PublicFault:
    """With nothing that a report of devices may leave out."""
    return pb.PublicFault(code=code, assertion=assertion, influence=[pb.PublicFaultInfluence(devices=names)])


@pytest.mark.parametrize(
    ("name", "device_id"),
    [
        ("gpu3", GPU),
        (GPU, GPU),
        (GPU.upper(), GPU),
        ("0000:3b:00.0", GPU),
        ("00000000:3B:00.0", GPU),
        ("3b:00.0", GPU),
        ("0000:3b:00", GPU),
        ("gpu3/gi2", f"{GPU}/gi2"),
        ("3b:00.0/gi2", f"{GPU}/gi2"),
        ("gpu3/gi5", f"{GPU}/gi5"),
        (f"{GPU}/gi5", f"{GPU}/gi5"),
        (MIG, "GPU-5/gi1"),
        (MIG.upper(), "GPU-5/gi1"),
        ("MIG-b", "GPU-5/gi1"),
    ],
)
def test_a_gpu_or_an_instance_is_known_by_all_its_names(name: str, device_id: str) -> None:
    found = public_faults.checked_fault("faults[0]", named("SITE_NCCL", name), CCAE, ANY)
    assert (found.devices, found.code, found.is_now) == ((device_id,), "SITE_NCCL", True)
    assert found.report == Report(
        sender="CCAE", fault_id=f"SITE_NCCL.{device_id}", began_ms=ANY.now_ms, by=CCAE.by
    )
    assert "fault_type" not in found.evidence


@pytest.mark.parametrize(
    ("code", "name", "device_id"),
    [
        ("SITE_PORT", "ib0", "id-ib0"),
        ("SITE_PORT", "mlx5_0", "id-ib0"),
        ("SITE_PORT", "19:00.0", "id-ib0"),
        ("SITE_DIMM", "dimm:A1@mc1/dimm0", "id-dimm:A1@mc1/dimm0"),
        ("SITE_DIMM", "mc1/dimm0", "id-dimm:A1@mc1/dimm0"),
        ("SITE_SWITCH", "ub0", "id-ub0"),
        ("SITE_NODE", "node", "id-node"),
        ("SITE_DIMM", "node", "id-node"),
        ("010001001", "node", "id-node"),
        ("010001001", "gpu3", GPU),
        ("NO_SUCH_ROW", "dimm:A1@mc0/dimm0", "id-dimm:A1@mc0/dimm0"),
        ("SITE_SLOW.42", "gpu3", GPU),
    ],
)
def test_a_code_fits_devices_of_its_kind(code: str, name: str, device_id: str) -> None:
    found = public_faults.checked_fault("faults[0]", named(code, name), CCAE, ANY)
    assert (found.devices, found.code) == ((device_id,), code)


@pytest.mark.parametrize(
    ("code", "name", "status", "reason"),
    [
        (
            "SITE_NCCL",
            "gpu33",
            Status.NOT_FOUND,
            (
                "faults[0].influence[0].devices[0]: 'gpu33' is not known; the nearest is gpu3;"
                " there are: node, gpu3, gpu4, gpu5, gpu3/gi2, ib0, dimm:A1@mc0/dimm0, dimm:A1@mc1/dimm0, ub0"
            ),
        ),
        (
            "SITE_NCCL",
            "3b:00.1",
            Status.NOT_FOUND,
            "; the nearest is 0000:3b:00.0, which is gpu3",
        ),
        ("SITE_NCCL", "", Status.NOT_FOUND, "devices[0]: '' is not known"),
        ("SITE_NCCL", "gpu4/gi1", Status.NOT_FOUND, "gpu4 is not divided into instances"),
        (
            "SITE_NCCL",
            "gpu5/gi2",
            Status.NOT_FOUND,
            "'gpu5/gi2' is not known; gpu5 has gi1; the nearest is gpu",
        ),
        ("SITE_NCCL", "ub0/gi1", Status.NOT_FOUND, "ub0 is not divided into instances"),
        ("SITE_NCCL", "gpu9/gi1", Status.NOT_FOUND, "'gpu9/gi1' is not known"),
        (
            "SITE_DIMM",
            "A1",
            Status.INVALID_ARGUMENT,
            "devices[0]: 'A1' is an attribute of dimm:A1@mc0/dimm0, dimm:A1@mc1/dimm0; use a name",
        ),
        (
            "SITE_NCCL",
            "ib0",
            Status.INVALID_ARGUMENT,
            (
                "faults[0].code: 'SITE_NCCL' is of kind chip, which fits devices of kind chip, instance;"
                " ib0 is of kind link and takes codes of kind link"
            ),
        ),
        ("SITE_PORT", "gpu3", Status.INVALID_ARGUMENT, "takes codes of kind chip or public"),
        ("010001001", "ib0", Status.INVALID_ARGUMENT, "fits devices of kind chip, instance, node;"),
        (
            "store_damaged",
            "node",
            Status.INVALID_ARGUMENT,
            "faults[0].code: 'store_damaged' is a code of nodeagent itself; no other system may report it",
        ),
        ("", "gpu3", Status.INVALID_ARGUMENT, "faults[0].code: 1 to 64 printable ASCII characters"),
        ("SITE_*", "gpu3", Status.INVALID_ARGUMENT, "faults[0].code: 1 to 64 printable ASCII characters"),
        ("X\x1b[31m", "gpu3", Status.INVALID_ARGUMENT, "faults[0].code: 1 to 64 printable ASCII"),
        ("X" * 65, "gpu3", Status.INVALID_ARGUMENT, "faults[0].code: 1 to 64 printable ASCII characters"),
    ],
)
def test_a_device_or_code_that_does_not_fit_is_refused_with_what_does(
    code: str, name: str, status: Status, reason: str
) -> None:
    with pytest.raises(Refusal) as refused:
        public_faults.checked_fault("faults[0]", named(code, name), CCAE, ANY)
    assert refused.value.status is status
    assert reason in refused.value.reason


def test_an_id_is_made_for_one_device_only() -> None:
    with pytest.raises(Refusal) as refused:
        public_faults.checked_fault("faults[0]", named("SITE_NCCL", "gpu3", "gpu4"), CCAE, ANY)
    assert refused.value.reason == (
        "faults[0].fault_id: missing; it may be left out where one device is named, not 2"
    )
    public_faults.checked_fault("faults[0]", named("SITE_NCCL", "gpu3", GPU), CCAE, ANY)


RECOVER = types_pb2.ASSERTION_RECOVER


class TestRecovery:
    """Of what is open under CCAE/fault-01."""

    @pytest.fixture
    def given(self) -> pb.PublicFault:
        given = named("GONE_FROM_TABLES", "gpu-that-was-replaced", assertion=RECOVER)
        given.fault_id = "fault-01"
        return given

    def test_who_opened_it_ends_it_whatever_became_of_devices_and_tables(self, given: pb.PublicFault) -> None:
        node = replace(ANY, open={"CCAE/fault-01": frozenset({CCAE.by})})
        found = public_faults.checked_fault("faults[0]", given, CCAE, node)
        assert (found.assertion, found.devices, found.ends_all) == (Assertion.RECOVER, (), False)

    @pytest.mark.parametrize("name", ["CCAE/fault-01", f"CCAE/SITE_NCCL.{GPU}"])
    def test_no_one_else_ends_it(self, given: pb.PublicFault, name: str) -> None:
        node = replace(ANY, open={name: frozenset({"certificate:other"})})
        if "SITE" in name:
            given = named("SITE_NCCL", "gpu3", assertion=RECOVER)
        else:
            given.influence[0].devices[:] = ["gpu3"]
            given.code = "SITE_NCCL"
        with pytest.raises(Refusal) as refused:
            public_faults.checked_fault("faults[0]", given, CCAE, node)
        assert refused.value.status is Status.PERMISSION_DENIED
        assert refused.value.reason == (
            f"faults[0].fault_id: {name.partition('/')[2]} of CCAE was opened by certificate:other, not by"
            " certificate:ccae.example.org; only the caller that opened it, or an operator, can end it;"
            " list those that share the name CCAE in public.senders.CCAE.certificates"
        )

    @pytest.mark.parametrize("code", ["OF_NO_TABLE", "of_no_table", "SITE_PORT", "site_port"])
    def test_by_its_made_id_also_where_the_code_fits_the_device_no_more(self, code: str) -> None:
        node = replace(ANY, open={f"CCAE/{code.upper()}.{GPU}": frozenset({CCAE.by})})
        found = public_faults.checked_fault(
            "faults[0]", named(code, "3b:00.0", assertion=RECOVER), CCAE, node
        )
        assert found.report.fault_id == f"{code.upper()}.{GPU}"

    def test_an_operator_ends_all(self, given: pb.PublicFault) -> None:
        node = replace(ANY, open={"CCAE/fault-01": frozenset({"certificate:other"})})
        found = public_faults.checked_fault(
            "faults[0]", given, replace(CCAE, by="uid:0", ends_all=True), node
        )
        assert found.ends_all

    def test_of_what_is_not_open_the_device_has_to_be_known(self, given: pb.PublicFault) -> None:
        with pytest.raises(Refusal, match="'gpu-that-was-replaced' is not known"):
            public_faults.checked_fault("faults[0]", given, CCAE, ANY)
