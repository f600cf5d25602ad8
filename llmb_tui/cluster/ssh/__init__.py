"""The way to a login node over SSH: settings, host keys, logins, and the connection.

Paramiko looks for invoke, which its own reading of `Match exec` needs and nothing here does. Importing that takes as
long as all the rest of it.
"""

import sys

if "invoke" not in sys.modules:
    sys.modules["invoke"] = None  # type: ignore[assignment]
    try:
        import paramiko  # noqa: F401 - what imports it later finds it
    finally:
        del sys.modules["invoke"]
