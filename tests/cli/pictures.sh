#!/bin/bash
# Pictures in and out, through a fake plugin that makes negatives; what it wrote is held against a reader of
# PNG that shares nothing with the program (pictures.py).
here=$(dirname "$(realpath "$0")")
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$here/lib.sh"
data=$GPURUN_SOURCE/tests/data/pictures
export GPURUN_PLUGIN_PATH=$GPURUN_BUILD/fakes

# negative KEY=VALUE...: runs one job.
negative() {
    printf '[a]\nplugin = negative\nrepeat = 1\nwarmup = 0\ndevice = cpu\n' >job.ini
    printf '%s\n' "$@" >>job.ini
    run "$GPURUN" job.ini
}

# is KIND FILE NUMBER... EXPRESSION
is() {
    checks=$((checks + 1))
    python3 "$here/pictures.py" "$@" 2>"$STDERR" && return
    fail "$2 is not as it should be: $(tail -n 1 "$STDERR")"
}

# refused NAME CODE KEY=VALUE... -- LINE
refused() {
    local code=$2 keys=()
    begin "$1"
    shift 2
    while [ "$1" != -- ]; do
        keys+=("$1")
        shift
    done
    negative "${keys[@]}"
    expect_exit "$code"
    if [ "$code" -eq 2 ]; then
        expect_line "$STDERR" "*$2"
    else
        expect_line "$STDOUT" "cpu: $2"
    fi
}

begin "kinds of PNG"
for kind in gray8:1:8 gray_alpha8:2:8 rgb8:3:8 rgba8:4:8 rgba8_interlaced:4:8 gray16:1:16 rgb16_interlaced:3:16; do
    IFS=: read -r name channels bits <<<"$kind"
    negative "input = file:$data/$name.png" 'output = out.png'
    expect_exit 0
    is png out.png 5 7 "$channels" "$bits" "$((bits == 16 ? 65535 : 255)) - v(y, x, c)"
done

begin "a turned JPEG stands upright"
negative "input = file:$data/turned6.jpg" 'output = out.png' 'dtype = uint8'
expect_exit 0
expect "upright" python3 -c 'import struct; assert struct.unpack(">II", open("out.png", "rb").read()[16:24]) == (24, 17)'

begin "a PGM becomes a PGM"
negative "input = file:$data/raw255.pgm" 'output = out.pgm'
expect_exit 0
expect "the bytes of a PGM" python3 - "$data/raw255.pgm" <<'EOF'
import sys
before, after = open(sys.argv[1], "rb").read(), open("out.pgm", "rb").read()
assert after == b"P5\n7 5\n255\n" + bytes(255 - v for v in before[-35:])
EOF

begin "float has the picture's whole numbers"
negative "input = file:$data/rgb8.png" 'output = out.npy' 'dtype = float'
expect_exit 0
is npy out.npy 5 7 3 '255 - v(y, x, c)'

begin "side by side"
negative "input = file:$data/rgb8.png" 'output.compare = both.png'
expect_exit 0
is png both.png 5 14 3 8 'v(y, x, c) if x < 7 else 255 - v(y, x - 7, c)'
negative "input = file:$data/gray16.png" 'crop = 2' 'output.compare = both.png' 'output = out.png'
expect_exit 0
is png both.png 5 12 1 16 'v(y, x, c) if x < 7 else 65535 - v(y, x - 7, c) if y < 3 else 0'
is png out.png 3 5 1 16 '65535 - v(y, x, c)'

begin "a generator's picture"
negative 'input = constant value=7' 'output = out.jpg' 'output.compare = both.ppm'
expect_exit 2
expect_line "$STDERR" 'job.ini:8: output.compare: a .ppm file has 3 channels, not 1 (name a .png file)'
negative 'input = constant value=7' 'output = out.jpg' 'output.compare = both.pgm'
expect_exit 0
expect "pgm" python3 -c 'assert open("both.pgm", "rb").read() == b"P5\n14 5\n255\n" + (b"\7" * 7 + b"\xf8" * 7) * 5'

head -c 100 "$data/rgb8.png" >cut.png
head -c 700 "$data/colour.jpg" >cut.jpg
printf 'no picture at all' >text.png
: >empty.png
refused "a cut PNG" 1 'input = file:cut.png' -- \
    'job.ini:6: input: cut.png: its PNG data is damaged: *'
refused "a cut JPEG" 1 'input = file:cut.jpg' -- \
    'job.ini:6: input: cut.jpg: its JPEG data is damaged: *'
refused "text" 1 'input = file:text.png' -- 'job.ini:6: input: text.png: is no PNG picture'
refused "nothing" 1 'input = file:empty.png' -- 'job.ini:6: input: empty.png: is no PNG picture'
refused "CMYK" 1 "input = file:$data/bad_cmyk.jpg" -- \
    '*bad_cmyk.jpg: holds CMYK colours, which gpurun does not read (convert it to RGB)'
refused "a header that promises gigabytes" 1 "input = file:$data/huge.png" -- \
    '*huge.png: is a picture of 60000 by 50000, which takes 9000000000 bytes, above picture_limit (1073741824): if it is to be read, write picture_limit = 9000000000'
refused "a limit of one's own" 1 "input = file:$data/gray8.png" 'picture_limit = 34' -- \
    '*gray8.png: is a picture of 7 by 5, which takes 35 bytes, above picture_limit (34): *'
refused "another dtype" 1 "input = file:$data/gray8.png" 'dtype = uint16' -- \
    '*gray8.png: holds uint8, the job says uint16 (a picture becomes uint8, float or double)'
refused "float is no picture" 2 'output = out.png' 'dtype = float' -- \
    'job.ini:6: output: a picture holds uint8 or uint16, not float (name a .npy file)'
refused "no .pbm" 2 'output = out.pbm' -- 'job.ini:6: output: gpurun writes no .pbm (name a .pgm or .png file)'
refused "compare needs a picture" 2 'output.compare = both.npy' -- \
    'job.ini:6: output.compare: both.npy: name a picture (.png .jpg .pgm .ppm)'
refused "a limit of nothing" 2 'picture_limit = 0' -- 'job.ini:6: picture_limit: 0 is below 1'
begin "no compare without pictures"
printf '[a]\nplugin = mirror\nmisbehave = no\noutput.compare = both.png\n' >job.ini
run "$GPURUN" job.ini
expect_exit 2
expect_line "$STDERR" 'job.ini:4: output.compare: a picture holds uint8 or uint16, not float (name a .npy file)'

begin "a limit is enough when it is just enough"
negative "input = file:$data/gray8.png" 'picture_limit = 35'
expect_exit 0

begin "nothing is left behind"
expect "no temporary files" [ -z "$(find . -name '.gpurun-*')" ]

finish 55
