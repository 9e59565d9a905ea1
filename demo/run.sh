#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Renders two pictures, compresses them with real encoders at several qualities, scores each result
# with build/bin/similis, and draws a heat map of the worst. All files go to build/demo.
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

# Prints one row: the size of the file and its scores.
score() {
  local bytes psnr ssim ms_ssim
  bytes=$(stat --format %s "$file")
  IFS=, read -r _ psnr ssim ms_ssim < <(
    $similis compare "$folder/$1.png" "$file" -m psnr -m ssim -m ms-ssim --format csv | tail -n 1)
  awk -v file="${file##*/}" -v bytes="$bytes" -v psnr="$psnr" -v ssim="$ssim" -v ms="$ms_ssim" \
    'BEGIN { printf "%-24s %8d %8.3f %8.2f %8.4f %8.4f\n",
               file, bytes, 8 * bytes / (768 * 512), psnr, ssim, ms }'
}

render
printf '%-24s %8s %8s %8s %8s %8s\n' file bytes bits/px psnr ssim ms-ssim
for picture in $pictures; do
  # AVIF counts the other way: 0 is lossless, 63 the coarsest.
  for encoding in "jpg 90" "jpg 60" "jpg 25" "webp 85" "webp 30" "avif 24" "avif 44"; do
    # shellcheck disable=SC2086
    compress $picture $encoding
    score $picture
  done
done

map=$folder/landscape.jpg-q25.ssim.png
$similis compare $folder/landscape.png $folder/landscape.jpg-q25.jpg -m ssim \
  --map "ssim=$map" >/dev/null
echo
echo "Heat map of the SSIM loss of landscape.jpg-q25.jpg: $map"
echo "Pictures: $folder"
