#!/bin/sh
# keeper.sh FOLDER PROGRAM ARGUMENT…
#
# Runs one program for a test process and makes sure that it ends with it. A test
# binary can end without running any destructor, or be killed; what it cannot do is
# keep its end of a pipe open. So standard input is that pipe: each line on it names
# a signal to pass on, and its end kills the program and removes FOLDER, the
# program's scratch space, and the folder around it once that is empty, unless
# KEEP_LOGS is set. A program that ends by itself leaves its folder, because the
# test will want to read the log.
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
