#!/usr/bin/env bash
# Stand-in for tests of NeMo's script: installs NeMo into the environment. While /run/rig/hold/reinstall is there, it waits.
set -e
while [ -e /run/rig/hold/reinstall ]; do
    touch /run/rig/hold/reinstall.reached
    sleep 0.1
done
echo 'Uninstalling stuff'
pip uninstall -y nemo_toolkit
echo 'Installing nemo'
cd "$(dirname "$0")"
pip install --no-cache-dir --no-deps torch
pip install --editable ".[all]"
echo 'All done!'
