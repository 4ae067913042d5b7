"""Watches one command of a job, and runs it again in place where that is wanted.

It stands alone: the standard library, Python 3.10 and later, and nothing of nodeagent but itself. So it is
also one file, ``nodeagent-job.pyz``, that goes into any image. Without a policy it only watches and reports.
"""
