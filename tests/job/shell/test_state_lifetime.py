"""Whether a folder of ``--state`` is known to end with the placement: by the mount that it lies on."""

from pathlib import Path

import pytest

from nodeagent.job.shell.state_lifetime import ends_early, ends_early_by

POD = "/var/lib/kubelet/pods/3f8a-11/volumes"

MOUNTS = f"""\
1712 1600 0:310 / / rw,relatime - overlay overlay rw,lowerdir=/a:/b,upperdir=/u,workdir=/w
1713 1712 0:312 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
1720 1712 259:1 {POD}/kubernetes.io~empty-dir/state /state rw,relatime master:1 - ext4 /dev/nvme0n1p1 rw
1721 1712 0:400 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=67108864k
1722 1712 0:52 /export/train /data rw,relatime - nfs4 10.0.0.5:/export/train rw,vers=4.2
1723 1722 0:401 / /data/cache rw,relatime - tmpfs tmpfs rw
1724 1712 259:7 / /block rw,relatime - ext4 /dev/nvme1n1 rw
1725 1712 0:402 / /twice rw,relatime - tmpfs tmpfs rw
1726 1712 0:53 / /twice rw,relatime - nfs4 10.0.0.5:/ rw
1727 1712 0:403 / /a\\040name rw,relatime shared:7 master:2 - tmpfs none rw
1728 1712 259:1 /pods/3f8a-11/volumes/kubernetes.io~empty-dir/two /own rw,relatime - xfs /dev/sdb rw
a line of another form
"""


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("/tmp/state", "in the root of a container (overlay)"),
        ("/state/7", "in an emptyDir"),
        ("/own", "in an emptyDir"),
        ("/dev/shm/state", "in memory (tmpfs)"),
        ("/data/cache/state", "in memory (tmpfs)"),
        ("/a name/state", "in memory (tmpfs)"),
        ("/data/state", ""),
        ("/database", "in the root of a container (overlay)"),
        ("/block/state", ""),
        ("/twice/state", ""),
    ],
)
def test_the_mount_of_the_folder_shows_whether_it_ends_early(folder: str, found: str) -> None:
    assert ends_early_by(MOUNTS, folder).partition(",")[0] == found


@pytest.mark.parametrize("listed", ["", "22 27 0:21 / /proc rw,relatime - proc proc rw\n", "- - -\n"])
def test_nothing_is_claimed_where_no_mount_is_listed(listed: str) -> None:
    assert ends_early_by(listed, "/state") == ""


def test_a_link_to_a_folder_counts_as_the_folder(tmp_path: Path) -> None:
    (tmp_path / "state").symlink_to("/dev/shm")
    assert ends_early(tmp_path / "state").startswith("in memory (tmpfs)")
