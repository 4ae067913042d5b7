"""What ``sos report`` collects of nodeagent: a plug-in for sos 4 (https://github.com/sosreport/sos).

sos loads plug-ins from its own Python package alone: link this file there, as docs/support.md shows. It only
reads. Unlike "nodeagent bundle" it takes no reports of vendors' tools and no logs of the kernel: sos has
plug-ins of its own for them.
"""

from sos.report.plugins import DebianPlugin, IndependentPlugin, Plugin, RedHatPlugin, UbuntuPlugin

LIMIT_S = 30
SECRETS = (
    r"((?:pass(?:word|wd|phrase)|secret|token|api[-_]?key|private[-_]?key|credentials?)"
    r"[\w.-]*[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;]+)"
)


class Nodeagent(Plugin, IndependentPlugin, RedHatPlugin, DebianPlugin, UbuntuPlugin):
    """nodeagent: fault detection for AI nodes"""

    # sos 4.0 names it description, and takes an IndependentPlugin on no system.
    description = short_desc = "nodeagent: fault detection for AI nodes"
    plugin_name = "nodeagent"
    profiles = ("system", "hardware")
    packages = ("nodeagent",)
    files = ("/usr/bin/nodeagent",)

    def setup(self) -> None:
        self.add_copy_spec(
            [
                "/etc/nodeagent/nodeagent.toml",
                "/etc/nodeagent/nodeagent.d/*.toml",
                "/etc/nodeagent/fault_codes/*",
                "/var/lib/nodeagent-reset/resets/*.json",
            ]
        )
        self.add_cmd_output(
            [
                "nodeagent status --all",
                "nodeagent status -o json",
                "nodeagent devices -o json",
                "nodeagent events -n 5000 -o json",
                "nodeagent audit -n 1000 -o json",
                "nodeagent job list --all -o json",
                "nodeagent consumers -o json",
                "nodeagent config show",
                "nodeagent config check",
                "nodeagent tables check",
                "nodeagent version",
                "systemctl show nodeagent.service",
                "ls -la /var/lib/nodeagent /var/lib/nodeagent-reset",
            ],
            timeout=LIMIT_S,
        )
        self.add_journal(units="nodeagent")
        self.add_journal(units="nodeagent-slurm")

    def postproc(self) -> None:
        self.do_path_regex_sub(r"/etc/nodeagent/.*", SECRETS, r"\1********")
        self.do_cmd_output_sub("nodeagent config", SECRETS, r"\1********")
