#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Renders two pictures, compresses them with real encoders at several qualities, scores all results
# with build/bin/similis against their source, compares the encoders by BD-rate, and draws a heat map
# of the worst and reports. All files go to build/demo.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/demo
similis=build/bin/similis
pictures="landscape still_life"
mkdir -p $folder

render() {
  local renderer=build/bin/render_pictures
  if [ $folder/still_life.png -nt $renderer ]; then return; fi
  echo "Rendering $pictures ..." >&2
  $renderer $folder
}

# compress PICTURE ENCODER QUALITY: leaves the file's name in $file
compress() {
  local source=$folder/$1
  file=$folder/$1.$2-q$3.$2
  case $2 in
    jpg) cjpeg -quality "$3" -outfile "$file" "$source.ppm" ;;
    webp) cwebp -quiet -q "$3" "$source.png" -o "$file" ;;
    avif) avifenc --speed 8 --min "$3" --max "$3" "$source.png" "$file" >/dev/null ;;
  esac
}

# ladder PICTURE: its encodes' sizes and scores, and each encoder's curve against JPEG's.
ladder() {
  local encoder quality curves=()
  # AVIF counts the other way: 0 is lossless, 63 the coarsest.
  for encoder in "jpg 90 75 50 25" "webp 95 80 55 30" "avif 16 24 34 44"; do
    local files=""
    for quality in ${encoder#* }; do
      compress "$1" "${encoder%% *}" "$quality"
      files+=${files:+,}$file
    done
    curves+=(--curve "${encoder%% *}=$files")
  done
  $similis compare "$folder/$1.png" "${curves[@]}" -m ssimulacra2,psnr,ms-ssim \
    --report "$folder/$1.html"
}

render
for picture in $pictures; do
  echo
  echo "$picture:"
  ladder $picture
done

map=$folder/landscape.jpg-q25.ssim.png
$similis compare $folder/landscape.png $folder/landscape.jpg-q25.jpg -m ssim \
  --map "ssim=$map" --report $folder/landscape.jpg-q25.html >/dev/null
echo
echo "Heat map of the SSIM loss of landscape.jpg-q25.jpg: $map"
echo "Reports, for a browser: $folder/landscape.html, still_life.html and landscape.jpg-q25.html"
echo "Pictures: $folder"
