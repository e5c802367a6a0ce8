#!/bin/bash
# Own data through topk: arrays in, arrays out, held against Python's own sort (data_files.py); files that
# are not what they say; outputs that cannot be written.
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"
npy=$GPURUN_SOURCE/tests/data/npy

write() {
    python3 "$here/data_files.py" write "$@" || fail "cannot write $1"
}

# job FILE KEY=VALUE...: a job file with one job of topk.
job() {
    local file=$1
    shift
    printf '[data]\nplugin = topk\nrepeat = 1\nwarmup = 0\ncpu = on\ndevice = cpu\n' >"$file"
    printf '%s\n' "$@" >>"$file"
}

# passes NAME KIND K FLAGS KEY=VALUE... -- ROW...: topk on the file given as `input`; its outputs are what
# Python finds in the rows, through .npy and through raw files.
passes() {
    local name=$1 kind=$2 k=$3 flags=$4 keys=()
    shift 4
    while [ "$1" != -- ]; do
        keys+=("$1")
        shift
    done
    shift
    begin "$name"
    [[ $flags == *distinct* ]] && keys+=("distinct = yes")
    [[ $flags == *smallest* ]] && keys+=("order = smallest")
    rm -f top.* where.*
    {
        printf '[global]\nplugin = topk\nrepeat = 1\nwarmup = 0\ndevice = cpu\nk = %s\n' "$k"
        printf '%s\n' "${keys[@]}"
        printf '[%s]\noutput = top.%s\noutput.indices = where.%s\n' npy npy npy bin bin bin
    } >job.ini
    run "$GPURUN" job.ini
    expect_exit 0
    expect_empty "$STDERR"
    checks=$((checks + 1))
    python3 "$here/data_files.py" answer "$kind" "$k" "$flags" "$@" 2>"$STDERR" && return
    fail "not Python's answer"
    tail -n 1 "$STDERR"
}

# --- layouts: the fixtures hold 37 i + 11, see tests/data/make_npy.py ---
seven='11 48 85 122 159 196 233'
grid=('11 48 85 122 159' '196 233 270 307 344' '381 418 455 492 529')
for file in good_i4 good_i4_big good_version2 good_version3 good_odd_spaces good_odd_order; do
    passes "$file" i4 3 '' "input = file:$npy/$file.npy" -- "$seven"
done
for kind in u4 i8 u8; do
    passes "good_$kind" $kind 7 '' "input = file:$npy/good_$kind.npy" -- "$seven"
    passes "good_${kind}_big" $kind 2 smallest "input = file:$npy/good_${kind}_big.npy" -- "$seven"
done
for file in good_i4_2d good_i4_fortran good_i4_big_fortran; do
    passes "$file" i4 2 rows "input = file:$npy/$file.npy" -- "${grid[@]}"
done
passes "good_f8_big_fortran" f8 1 rows "input = file:$npy/good_f8_big_fortran.npy" -- \
    '-36.125 -31.5 -26.875 -22.25 -17.625' '-13 -8.375 -3.75 0.875 5.5' '10.125 14.75 19.375 24 28.625'

# --- raw files ---
write keys.bin u4 5 '' 1 4294967295 0 7 4294967295 2147483648
passes "raw uint32" u4 3 '' 'input = file:keys.bin' 'dtype = uint32' -- '4294967295 0 7 4294967295 2147483648'
write keys.bin i8 4 '' 1 -9223372036854775808 9223372036854775807 0 -1
passes "raw int64" i8 4 '' 'input = file:keys.bin' 'dtype = int64' -- \
    '-9223372036854775808 9223372036854775807 0 -1'
passes "raw int64, smallest" i8 1 smallest 'input = file:keys.bin' 'dtype = int64' -- \
    '-9223372036854775808 9223372036854775807 0 -1'
write keys.bin f4 6 '' 1 1 2 3 4 5 6
passes "raw, as two rows" f4 2 rows 'input = file:keys.bin' 'dtype = float' 'rows = 2' -- '1 2 3' '4 5 6'

# --- answers ---
write a.npy i4 8 '' 1 5 3 5 -2147483648 3 5 0 2147483647
passes "ties go to the lowest index" i4 5 '' 'input = file:a.npy' -- '5 3 5 -2147483648 3 5 0 2147483647'
passes "ties, smallest" i4 5 smallest 'input = file:a.npy' -- '5 3 5 -2147483648 3 5 0 2147483647'
passes "k = n" i4 8 '' 'input = file:a.npy' -- '5 3 5 -2147483648 3 5 0 2147483647'
passes "k = 0" i4 0 '' 'input = file:a.npy' -- '5 3 5 -2147483648 3 5 0 2147483647'
passes "distinct" i4 3 distinct 'input = file:a.npy' -- '5 3 5 -2147483648 3 5 0 2147483647'
passes "distinct, fewer than k" i4 8 distinct 'input = file:a.npy' -- '5 3 5 -2147483648 3 5 0 2147483647'
write a.npy i4 4 '' 1 -7 -3 -9 -3
passes "all below zero" i4 2 '' 'input = file:a.npy' -- '-7 -3 -9 -3'
write a.npy i4 0 '' 1
passes "n = 0" i4 0 '' 'input = file:a.npy' -- ''
write a.npy f8 9 '>' 3 1 nan -0.0 0.0 inf -nan -inf 1 -5e-324
row='1 nan -0.0 0.0 inf -nan -inf 1 -5e-324'
for k in 1 4 9; do
    passes "NaN is the largest, k = $k" f8 $k '' 'input = file:a.npy' -- "$row"
    passes "NaN is the last of the smallest, k = $k" f8 $k smallest 'input = file:a.npy' -- "$row"
done
passes "distinct NaN and zeros" f8 9 distinct 'input = file:a.npy' -- "$row"
write a.npy f4 5 '' 2 0.1 0.2 0.1 -0.3 3e38
passes "float" f4 4 '' 'input = file:a.npy' -- '0.1 0.2 0.1 -0.3 3e38'
write a.npy i4 3x4 F 1 1 1 2 2 4 4 4 4 9 8 7 6
passes "rows of different counts" i4 3 'rows distinct' 'input = file:a.npy' -- '1 1 2 2' '4 4 4 4' '9 8 7 6'
write a.npy i4 2x3 '' 1 1 1 2 4 3 4
passes "rows of one count below k" i4 3 'rows distinct' 'input = file:a.npy' -- '1 1 2' '4 3 4'
values=() state=1
for ((i = 0; i < 3000; i++)); do
    state=$(((state * 1103515245 + 12345) % 2147483648))
    values+=($((state % 1000 - 500)))
done
write a.npy i4 3000 '>' 1 "${values[@]}"
passes "3000 with many ties" i4 700 '' 'input = file:a.npy' -- "${values[*]}"
passes "3000, distinct" i4 700 distinct 'input = file:a.npy' -- "${values[*]}"
passes "3000, two threads" i4 700 smallest 'input = file:a.npy' 'threads = 2' -- "${values[*]}"

begin "the harness sees a wrong answer"
run "$GPURUN" job.ini -s order=largest
expect_exit 0
python3 "$here/data_files.py" answer i4 700 smallest "${values[*]}" 2>/dev/null &&
    fail "the largest were taken for the smallest"
checks=$((checks + 1))

begin "every offset within a vector"
for offset in 1 3; do
    passes "offset $offset" i4 700 '' 'input = file:a.npy' "offset = $offset" -- "${values[*]}"
done

# --- files that are not what they say: that case is an error, the others run, outputs stay whole ---
# refused NAME PATH REASON [KEY=VALUE...]
refused() {
    local name=$1 path=$2 reason=$3
    shift 3
    begin "$name"
    job job.ini 'k = 1' "input = file:$path" 'output = kept.npy' 'output.indices = new.npy' "$@"
    printf '[good]\nplugin = topk\nn = 10\nrepeat = 1\nk = 2\noutput = good.npy\n' >>job.ini
    printf 'as it was' >kept.npy
    rm -f new.npy good.npy
    run "$GPURUN" job.ini
    expect_exit 1
    expect_line "$STDOUT" "cpu: job.ini:8: input: $path: $reason"
    expect_line "$STDOUT" 'FAILED: 1 of 2 cases passed, 1 not'
    expect "good.npy was not written" test -s good.npy
    expect "kept.npy was changed" test "$(cat kept.npy)" = 'as it was'
    expect "new.npy was made" test ! -e new.npy
    expect "a temporary file is left" test -z "$(find . -name '.gpurun-*')"
}
cp "$npy/good_i4.npy" short.npy
truncate -s -1 short.npy
refused "cut short" short.npy 'is cut short: it promises 28 bytes of data, the file holds 27'
cp "$npy/good_i4.npy" longer.npy
printf 'xyz' >>longer.npy
refused "trailing bytes" longer.npy 'has 3 bytes after the 28 bytes of data that it promises'
: >nothing.npy
refused "nothing" nothing.npy 'is empty, not even a header'
printf '\x93NUMPY\1' >stump.npy
refused "half a header" stump.npy 'it does not start as a NumPy file does'
refused "dtype of the file" "$npy/good_f8.npy" 'holds double, the job says int32' 'dtype = int32'
refused "structured" "$npy/bad_structured.npy" \
    'it holds structured elements; gpurun takes plain int8 to uint64, half, float and double'
refused "objects" "$npy/bad_object.npy" \
    "it holds Python objects ('|O'); gpurun takes int8 to uint64, half, float and double"
refused "rank 5" "$npy/bad_rank5.npy" 'it has more than 4 dimensions'
printf 'abcdefg' >odd.bin
refused "raw, half an element" odd.bin 'its 7 bytes are no whole number of int32 elements of 4 bytes' 'dtype = int32'
# lying SHAPE: a header alone, for bytes that nobody has.
lying() {
    python3 -c 'import struct, sys
text = "{%r: %r, %r: False, %r: %s, }" % ("descr", "<i4", "fortran_order", "shape", sys.argv[1])
sys.stdout.buffer.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode())' "$1"
}
lying '(1000000000000,)' >lies.npy
refused "a lying header" lies.npy 'is cut short: it promises 4000000000000 bytes of data, the file holds 0'
lying '(4294967296, 4294967296)' >wraps.npy
refused "a shape that wraps" wraps.npy 'its shape is larger than any file can be'
lying '(4611686018427387905,)' >wraps.npy
refused "a byte count that wraps" wraps.npy 'its shape is larger than any file can be'

begin "refused in under a second, without a large allocation"
start=${EPOCHREALTIME/./}
if is_sanitized; then
    run "$GPURUN" job.ini
else
    run bash -c 'ulimit -v 1000000; exec "$@"' - "$GPURUN" job.ini
fi
expect_exit 1
expect_line "$STDOUT" 'cpu: *its shape is larger than any file can be'
expect "too slow" test $(((${EPOCHREALTIME/./} - start) / 1000)) -lt 1000

begin "every bad fixture"
for file in "$npy"/bad_*.npy; do
    printf '[%s]\nplugin = topk\nk = 1\ninput = file:%s\n' "$(basename "$file" .npy)" "$file"
done >bad.ini
expect "many bad fixtures" test "$(grep -c plugin bad.ini)" -ge 40
run "$GPURUN" bad.ini --json
expect_exit 1
expect "not all are errors" python3 -c 'import json, sys
sys.exit({r["status"] for r in json.load(open(sys.argv[1]))["records"]} != {"error"})' "$STDOUT"

# --- outputs ---
begin "an output replaces a file only when it is whole"
job job.ini 'n = 10' 'k = 2' 'output = kept.npy'
printf 'as it was' >kept.npy
ln kept.npy other-name.npy
run "$GPURUN" job.ini
expect_exit 0
expect "kept.npy is not new" test "$(head -c 6 kept.npy)" = $'\x93NUMPY'
expect "its old bytes were written over" test "$(cat other-name.npy)" = 'as it was'

begin "a wrong answer is not written"
printf '[wrong]\nplugin = mirror\nmisbehave = wrong\noutput = wrong.npy\noutput.sum = sum.npy\n' >wrong.ini
GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes run "$GPURUN" wrong.ini
expect_exit 1
expect "wrong.npy was written" test ! -e wrong.npy -a ! -e sum.npy

begin "an output of any role, on the device too"
printf '[in]\nplugin = mirror\nn = 7\nrepeat = 2\ninput = file:%s\noutput = out.npy\noutput.sum = sum.bin\n' \
    "$npy/good_f4.npy" >mirror.ini
for memory in explicit pinned zerocopy managed; do
    rm -f out.npy sum.bin
    GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes run "$FAKE" mirror.ini -s memory=$memory -s variant=copy
    expect_exit 0
    expect "out.npy differs from the input" cmp out.npy "$npy/good_f4.npy"
    expect "sum.bin is not 28 bytes" test "$(stat -c %s sum.bin)" -eq 28
done

# unwritable NAME PATH REASON: the case fails with the reason; the job after it runs.
unwritable() {
    begin "$1"
    job job.ini 'n = 100K' 'k = 50K' "output = $2"
    printf '[good]\nplugin = topk\nn = 10\nk = 2\nrepeat = 1\n' >>job.ini
    run "$GPURUN" job.ini
    expect_exit 1
    expect_line "$STDOUT" "cpu: job.ini:9: output: $2: cannot be written: $3"
    expect_line "$STDOUT" 'FAILED: 1 of 2 cases passed, 1 not'
}
unwritable "a folder where nothing can be made" /proc/top.npy \
    'cannot create a file in /proc: No such file or directory'
if [ "$(id -u)" -ne 0 ]; then
    mkdir closed
    chmod a-w closed
    unwritable "a folder without permission" closed/top.npy \
        'cannot create a file in closed: Permission denied'
fi

begin "a file that cannot grow"
job job.ini 'n = 100K' 'k = 50K' 'output = kept.npy'
printf 'as it was' >kept.npy
run bash -c 'trap "" XFSZ; ulimit -f 64; exec "$@"' - "$GPURUN" job.ini
expect_exit 1
expect_line "$STDOUT" 'cpu: job.ini:9: output: kept.npy: cannot be written: File too large'
expect "kept.npy was changed" test "$(cat kept.npy)" = 'as it was'
expect "a temporary file is left" test -z "$(find . -name '.gpurun-*')"

begin "a full disk"
mkdir "$WORK/full"
if mount -t tmpfs -o size=64k tmpfs "$WORK/full" 2>/dev/null; then
    printf 'as it was' >"$WORK/full/top.npy"
    unwritable "a full disk" "$WORK/full/top.npy" 'No space left on device'
    expect "top.npy was changed" test "$(cat "$WORK/full/top.npy")" = 'as it was'
    expect "a temporary file is left" test "$(ls -A "$WORK/full")" = top.npy

    begin "records on a full disk"
    job job.ini 'n = 10' 'k = 2'
    head -c 100K /dev/zero >"$WORK/full/fill" 2>/dev/null
    : >"$WORK/full/records.jsonl" 2>/dev/null
    run "$GPURUN" job.ini --records "$WORK/full/records.jsonl"
    expect_exit 1
    expect_line "$STDERR" 'gpurun: --records *: No space left on device: records from here on are lost'
    expect "a part of a record is left" test ! -s "$WORK/full/records.jsonl"
else
    echo "note: no tmpfs can be mounted here: a full disk was not tried"
fi

finish 240
