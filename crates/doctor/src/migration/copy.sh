set -eu
unfinished=/to/.copy-unfinished
if [ ! -e "$unfinished" ] && [ -n "$(ls -A /to | grep -vxE 'lost\+found|\.snapshot')" ]; then
  echo "The new volume has files that are not from an unfinished copy. They will not be overwritten." >&2
  exit 1
fi
command -v rsync >/dev/null || apk add --no-cache rsync
# SELinux labels belong to the node, and "lost+found" and ".snapshot" to the volume.
copy() {
  rsync $RSYNC_FLAGS --delete \
    --exclude=/lost+found --exclude=/.snapshot --exclude=/.copy-unfinished \
    --filter='-x security.selinux' --filter='-x system.*' "$@" /from/ /to/
}
touch "$unfinished"
copy --stats
different=$(copy --checksum --dry-run --itemize-changes)
if [ -n "$different" ]; then
  echo "The copy differs from what was copied:" >&2
  echo "$different" >&2
  exit 1
fi
rm "$unfinished"
sync
echo "Everything was copied, and every file was compared by its checksum."
