#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cross_root.sh FOLDER: makes FOLDER, unless it is there, with what builds for and emulates ARM64:
#   tools    the cross compiler and qemu-user, programs of this machine
#   sysroot  Debian's arm64 libraries and headers
#   dpkg     a database of dpkg that says which package each library of the sysroot is of
# Runs inside the environment, whose apt fetches the packages. They are unpacked, not installed: no script
# of them runs, and the environment itself stays as it is.
set -eu
folder=$1
repo=$(cd "$(dirname "$0")/../.." && pwd -P)

tools=(g++-14-aarch64-linux-gnu qemu-user)
# The libraries of the environment are those of the target, too. Python itself is that of this machine.
mapfile -t libraries < <(grep -v '^#' "$repo/tools/dev/packages.txt" | grep -e '-dev$' |
  grep -v -e '^libclang-' | sed 's/^python3-/libpython3-/')
libraries+=(libstdc++-14-dev)

wanted="format 3, ${tools[*]} ${libraries[*]}"
isReady() { [ -f "$folder/stamp" ] && [ "$(<"$folder/stamp")" = "$wanted" ]; }
isReady && exit 0
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
isReady && exit 0

log=$folder/setup.log
fail() {
  tail -n 20 "$log" >&2
  echo "dev: Making the ARM64 folder failed; the whole log is $log." >&2
  exit 1
}
echo "dev: Fetching the ARM64 compiler, libraries and emulator (a minute, 0.7 GB) to $folder ..." >&2
: >"$log"
rm -rf "$folder"/{new,tools,sysroot,dpkg,stamp}
new=$folder/new

# fetch NAME ARCHITECTURE STATUS PACKAGE...: downloads the packages, and what they need beyond what the
# dpkg status file says is installed, into new/NAME, by an apt whose state is its own.
fetch() {
  local name=$1 architecture=$2 status=$3 state=$new/apt-$1 package
  shift 3
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$new/$name"
  cp "$status" "$state/status"
  local options=(-q -y -o "Dir::State=$state" -o "Dir::State::lists=$state/lists"
    -o "Dir::State::status=$state/status" -o "Dir::State::extended_states=$state/extended"
    -o "Dir::Cache=$state/cache" -o "Dir::Log=$state" -o "APT::Architecture=$architecture"
    -o "APT::Architectures::=$architecture" -o APT::Sandbox::User= -o Debug::NoLocking=1)
  apt-get "${options[@]}" update || return 1
  apt-get "${options[@]}" --no-install-recommends --download-only install "$@" || return 1
  for package in "$state"/cache/archives/*.deb; do
    dpkg-deb --extract "$package" "$new/$name" || return 1
  done
}

{
  fetch tools "$(dpkg --print-architecture)" /var/lib/dpkg/status "${tools[@]}" &&
    fetch sysroot arm64 /dev/null "${libraries[@]}"
} >>"$log" 2>&1 </dev/null || fail

# qemu-user looks for each absolute path in the sysroot first: it holds nothing that tests read.
mkdir "$new/kept" && mkdir "$new/kept/usr" || fail
for part in include lib share; do
  mv "$new/sysroot/usr/$part" "$new/kept/usr/$part" || fail
done
ln -s usr/lib "$new/kept/lib" || fail
rm -rf "$new/sysroot" "$new"/kept/usr/share/{doc,man} "$new/tools/usr/share" || fail
find "$new/tools/usr/bin" -name 'qemu-*' ! -name qemu-aarch64 -delete || fail
# dpkg-shlibdeps asks this database which package a library is of, and what packages that need it depend on.
mkdir -p "$new/dpkg/info" && echo 1 >"$new/dpkg/info/format" || fail
printf '%s\n' "$(dpkg --print-architecture)" arm64 >"$new/dpkg/arch" || fail
for package in "$new"/apt-sysroot/cache/archives/*.deb; do
  name=$(dpkg-deb --show --showformat '${Package}' "$package") || fail
  if [ "$(dpkg-deb --field "$package" Multi-Arch)" = same ]; then name+=:arm64; fi
  dpkg-deb --field "$package" | sed '/^Package:/a Status: install ok installed' >>"$new/dpkg/status" &&
    echo >>"$new/dpkg/status" || fail
  dpkg-deb --control "$package" "$new/control" || fail
  for file in shlibs symbols; do
    if [ -f "$new/control/$file" ]; then mv "$new/control/$file" "$new/dpkg/info/$name.$file"; fi
  done
  rm -rf "$new/control"
  dpkg-deb --fsys-tarfile "$package" | tar --list | sed "s|^\.|$folder/sysroot|; s|/\$||" \
    >"$new/dpkg/info/$name.list" || fail
done
# Assembler and linker find their libraries beside them.
find "$new/tools/usr/bin" -type f -name 'aarch64-linux-gnu-*' -exec patchelf --set-rpath \
  "\$ORIGIN/../lib/$(gcc -print-multiarch)" {} + >>"$log" 2>&1 || fail
# Scripts of the linker name the libraries where a package would have installed them.
grep -lI '/usr/aarch64-linux-gnu/lib/' "$new"/tools/usr/aarch64-linux-gnu/lib/*.{a,so} |
  xargs sed -i 's|/usr/aarch64-linux-gnu/lib/||g' || fail
mv "$new/kept" "$folder/sysroot" && mv "$new/tools" "$new/dpkg" "$folder" || fail
rm -rf "$new"
printf '%s\n' "$wanted" >"$folder/stamp"
