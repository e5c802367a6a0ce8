#!/bin/bash
# Plugins that cannot be loaded: what is said of each, the exit code, and that the other jobs run.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=../cli/lib.sh
. "$here/../cli/lib.sh"

mkdir plugins
cp -r "$GPURUN_BUILD"/fakes/* plugins
export GPURUN_PLUGIN_PATH=$PWD/plugins

# refused NAME REASON: the plugin is found, its case is an error with this reason, the good job runs.
refused() {
    local name=$1 reason=$2
    begin "$name"
    printf '[bad]\nplugin = %s\n[good]\nplugin = mirror\nrepeat = 1\n' "$name" >job.ini
    run "$GPURUN" job.ini --json --records records.jsonl
    expect_exit 3
    expect_empty "$STDERR"
    expect_cases "bad cpu error: $reason
good cpu passed
"
    run "$GPURUN" check job.ini
    expect_exit 3
    expect_text "$STDERR" "job.ini:2: plugin: $reason
"
    expect_text "$STDOUT" '2 jobs, 1 could not be checked
'
    run "$GPURUN" describe "$name"
    expect_exit 3
    expect_text "$STDERR" "gpurun: $name: $reason
"
    expect_empty "$STDOUT"
}

at=$GPURUN_PLUGIN_PATH
refused bad_magic "$at/bad_magic/bad_magic.so: its gpurun_plugin is no plugin table (magic 12345678, not 47525550)"
refused old_abi "$at/old_abi/old_abi.so: built for ABI 0.9, this gpurun speaks 1.3: rebuild it"
refused new_abi "$at/new_abi/new_abi.so: built for ABI 1.4, this gpurun speaks 1.3: rebuild it"
refused short_table "$at/short_table/short_table.so: its table has 64 bytes, ABI 1.3 has 136: rebuild it"
refused no_symbol "$at/no_symbol/no_symbol.so exports no gpurun_plugin: is it a gpurun plugin?"
refused no_hook "$at/no_hook/no_hook.so: has no verify hook"
refused no_run_gpu "$at/no_run_gpu/no_run_gpu.so: has no run_gpu hook"
refused no_launch "$at/no_launch/no_launch.so: variant 0 has no name, idea or launcher"
refused twin_variants "$at/twin_variants/twin_variants.so: variant nothing has a name that is taken"
refused wrong_name "$at/wrong_name/wrong_name.so: calls itself 'another_name': file and name must agree"
refused twin_options "$at/twin_options/twin_options.so: option n has a name that is taken"
refused no_help "$at/no_help/no_help.so: option 0 has no name, default or help"
refused core_key "$at/core_key/core_key.so: option repeat has a name that is taken"
refused option_outside "$at/option_outside/option_outside.so: option n lies outside the options struct"
refused bad_default "$at/bad_default/bad_default.so: option n: its default: 'many' is not a whole number (write 20, 1e8, 100M or 4Ki)"

# --- files that are no shared objects, or not for us ---
mkdir plugins/text plugins/empty plugins/folder plugins/folder/folder.so plugins/cut plugins/foreign
echo 'not a library' >plugins/text/text.so
refused text "$at/text/text.so is not a shared object (no ELF header)"
: >plugins/empty/empty.so
refused empty "$at/empty/empty.so is not a shared object (no ELF header)"
refused folder "$at/folder/folder.so is not a regular file"

mirror=plugins/mirror/mirror.so
# patch FILE OFFSET BYTES: writes over the bytes of a copy of mirror.so.
patch() {
    cp $mirror "$1"
    printf '%b' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
own='x86-64' foreign='64-bit Arm' machine='\xb7\x00'
if [ "$(od -An -tx1 -j18 -N2 $mirror | tr -d ' ')" = b700 ]; then
    own='64-bit Arm' foreign='x86-64' machine='\x3e\x00'
fi
patch plugins/foreign/foreign.so 18 "$machine"
refused foreign "$at/foreign/foreign.so is built for $foreign, this gpurun runs on $own"
patch plugins/foreign/foreign.so 18 '\xf3\x00'
refused foreign "$at/foreign/foreign.so is built for RISC-V, this gpurun runs on $own"
patch plugins/foreign/foreign.so 18 '\x34\x12'
refused foreign "$at/foreign/foreign.so is built for another processor, this gpurun runs on $own"

begin "cut short"
head -c 1000 $mirror >plugins/cut/cut.so
printf '[bad]\nplugin = cut\n' >job.ini
run "$GPURUN" job.ini
expect_exit 3
expect_line "$STDOUT" "cpu: $at/cut/cut.so is cut short: copy it again"

# --- what others can write ---
mkdir -p other/loose
cp $mirror other/loose/loose.so
export GPURUN_PLUGIN_PATH=$at:$PWD/other
loose=$PWD/other/loose
chmod o+w other/loose/loose.so
refused loose "$loose/loose.so can be written by anyone: refused (chmod o-w $loose/loose.so)"
chmod o-w other/loose/loose.so
chmod o+w other/loose
refused loose "the folder $loose can be written by anyone: refused (chmod o-w $loose)"
chmod o-w other/loose
chmod o+w other
refused loose "the folder $PWD/other can be written by anyone: refused (chmod o-w $PWD/other)"
chmod o-w other
refused loose "$loose/loose.so: calls itself 'mirror': file and name must agree"

begin "a plugin without a folder of its own"
mkdir flat
cp $mirror flat/mirror.so
printf '[flat]\nplugin = mirror\nrepeat = 1\n' >job.ini
GPURUN_PLUGIN_PATH=$PWD/flat run "$GPURUN" job.ini
expect_exit 0
chmod o+w flat
GPURUN_PLUGIN_PATH=$PWD/flat run "$GPURUN" job.ini
expect_exit 3
expect_line "$STDOUT" "cpu: the folder $PWD/flat can be written by anyone: refused (chmod o-w $PWD/flat)"

begin "a plugin that crashes while it is loaded"
export MISBEHAVE=crash
printf '[bad]\nplugin = constructor\n[good]\nplugin = mirror\nrepeat = 1\n' >job.ini
run "$GPURUN" check job.ini
expect_exit 1
expect_text "$STDERR" 'job.ini:2: plugin: while it was checked: killed by signal 11 (Segmentation fault)
'
expect_text "$STDOUT" '2 jobs, 1 could not be checked
'
run "$GPURUN" describe constructor
expect_exit 3
expect_text "$STDERR" 'gpurun: constructor: the worker died: killed by signal 11 (Segmentation fault)
'

begin "a plugin that never has done loading"
export MISBEHAVE=hang
mkdir alone
cp "$GPURUN" alone/gpurun # where no other plugin is found
cp -r plugins/constructor alone
for command in 'describe constructor' list selftest; do
    # shellcheck disable=SC2086
    GPURUN_PLUGIN_PATH=$PWD/alone run timeout 60 alone/gpurun $command --timeout 2s
    expect "exit code $CODE of $command" test "$CODE" -eq 3 -o "$command $CODE" = 'selftest 1'
    expect_line "$STDERR" 'gpurun: constructor: no answer after 2s; --timeout TIME waits longer'
done
unset MISBEHAVE

begin "an ending that is not .so"
cp $mirror plugins/plain
run "$GPURUN" list
expect_no_line "$STDOUT" plain

finish 222
