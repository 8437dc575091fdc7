#!/bin/sh
# keeper.sh FOLDER PROGRAM ARGUMENT…
#
# Runs one program for a test process and makes sure that the program ends with it. A test binary
# can be killed, or end without running any destructor; in both cases its end of a pipe closes.
# Standard input is that pipe: each line on it names a signal to pass on. When the pipe closes, the
# program is killed, and FOLDER, its scratch space, is removed, and also the parent folder once that
# is empty, unless KEEP_LOGS is set. A program that ends without this leaves its folder, because the
# test needs its log.
folder=$1
shift
exec 3<&0
"$@" </dev/null 3<&- &
program=$!
(
    while read -r signal; do
        kill -s "$signal" "$program"
    done
    : >"$folder/ending"
    kill -s KILL "$program"
) <&3 2>/dev/null &
listener=$!
exec 3<&-
wait "$program"
status=$?
kill "$listener" 2>/dev/null
if [ -e "$folder/ending" ] && [ -z "$KEEP_LOGS" ]; then
    rm -rf "$folder"
    rmdir "$(dirname "$folder")" 2>/dev/null
fi
exit "$status"
