"""Watches one command of a job, and runs it again in place where its policy allows that.

It needs the standard library of Python 3.10 and nothing of nodeagent but itself, so it is also one file,
``nodeagent-job.pyz``, that goes into any image. Without a policy it only watches and reports.

``session`` and ``hang`` decide and do no I/O; ``shell`` runs, signals and writes; ``watching`` measures;
``step`` is the loop over the nodes of a Slurm job; ``policy`` reads what may be done to a job.
"""
