#!/bin/bash
# The address of the Debian mirror that this host installs from.
set -euo pipefail
cd /etc/apt
mirror=$(cat sources.list.d/*.sources 2>/dev/null | sed -n 's/^URIs: *\([^ ]*debian\)\/*\( .*\)\{0,1\}$/\1/p' | head -n 1)
[ -n "$mirror" ] || mirror=$(cat sources.list sources.list.d/*.list 2>/dev/null | sed -n 's/^deb .*\(http[^ ]*\/debian\)\/* .*/\1/p' | head -n 1)
[ -n "$mirror" ] || { echo "no Debian mirror in /etc/apt" >&2; exit 1; }
echo "$mirror"
