#!/usr/bin/env bash
# Installs the Debian packages that the tests call, where they are missing.
# Without root, or on a system without apt-get, it names them and goes on:
# tests that need one then say so themselves.
set -euo pipefail

# program:package
wanted=(iperf3:iperf3 iperf:iperf ethtool:ethtool tcpdump:tcpdump ip:iproute2 /usr/sbin/sshd:openssh-server gcc:gcc)

missing=()
for pair in "${wanted[@]}"; do
	command -v "${pair%%:*}" >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
	echo "deps: the tests need these packages: ${missing[*]}" >&2
	exit 0
fi
echo "deps: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
