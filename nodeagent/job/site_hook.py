"""What each Python of a job runs as ``sitecustomize``, of any version since 2.7: it loads ``error_hook``,
which is in the same folder, and then the ``sitecustomize`` that there would be without this one.

It prints nothing, and raises nothing but what that other ``sitecustomize`` raises.
"""

import os
import sys

if __name__ == "sitecustomize":
    _own = os.path.dirname(os.path.abspath(__file__))
    if sys.version_info >= (3, 8) and os.environ.get("NODEAGENT_ERRORS"):
        try:
            import nodeagent_error_hook  # type: ignore[import-not-found]

            nodeagent_error_hook.install(os.environ["NODEAGENT_ERRORS"])
        except Exception:  # a program runs also without it
            pass
    sys.path[:] = [_each for _each in sys.path if os.path.abspath(_each or ".") != _own]
    _this = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # type: ignore[import-not-found] # noqa: F401
    except ImportError as _error:
        if getattr(_error, "name", "sitecustomize") != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = _this
