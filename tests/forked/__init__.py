"""The daemons, commands and workers that tests start are forked from processes that have loaded their code.

::

    test ──asks──> origin ──forks──> a command, as a child of the test's process
                                       └──asks──> nursery ──forks──> a worker, as a child of the daemon
"""
