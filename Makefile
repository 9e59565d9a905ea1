# SPDX-License-Identifier: Apache-2.0
# The front door: each target first installs what it needs and this machine lacks.
# CMake does the work; docs/HACKING.md says how to call it directly.
.PHONY: help demo check build check-python check-peers wheel wheel-any wheel-rocm check-sycl \
  check-sanitizers check-gpu-builds check-gpu-on-cpu \
  gpu-kit \
  fuzz bench docs tidy format clean
MAKEFLAGS += --no-print-directory

install := scripts/install_dependencies.sh
jobs ?= $(shell nproc)
FUZZ_RUNS ?= 200000
FUZZ_SECONDS ?= 0

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile

demo: build ## render pictures, compress them, score them, show where they lost
	@$(install) demo
	@cmake --build build --parallel $(jobs) --target render_pictures
	@demo/run.sh

check: ## build everything and run every test
	@$(install) build check docs
	@scripts/check.py --jobs $(jobs) release

build: ## the program, at build/bin/similis
	@$(install) build
	@scripts/configure.sh release
	@cmake --build build --parallel $(jobs) --target bin/similis similis

check-python: ## the Python package's tests alone, with torch and JAX (3 GB where torch has CUDA)
	@$(install) build check python
	@scripts/configure.sh release
	@cmake --build build --parallel $(jobs) --target similis_python
	@ctest --test-dir build -R '^python/' --output-on-failure

check-peers: ## the tests of scikit-image, MONAI and others on similis.compat; downloads them
	@$(install) build check python
	@scripts/configure.sh release
	@cmake --build build --parallel $(jobs) --target similis_python
	@PYTHONPATH=build/python .venv/bin/python scripts/peer_tests.py build/peers

wheel: ## dist/similis-….whl for every Python on Linux, with CUDA where nvcc is
	@$(install) build wheel
	@scripts/wheel.sh $(jobs)

wheel-any: ## dist/similis-…-py3-none-any.whl for macOS and others: torch's tensors alone
	@$(install) build check
	@scripts/configure.sh release
	@cmake --build build --parallel $(jobs) --target similis_package_data
	@.venv/bin/python scripts/wheel_for_any.py dist

wheel-rocm: ## compile the library for AMD's GPUs by HIP, where hipcc is
	@$(install) build gpu-builds
	@scripts/wheel_rocm.sh $(jobs)

check-sycl: ## kernels for Intel's GPUs, run on this CPU by SYCL; downloads 1.5 GB
	@$(install) build check python
	@scripts/configure.sh release
	@cmake --build build --parallel $(jobs) --target similis_python
	@scripts/check_sycl.sh

check-sanitizers: ## the tests under asan+ubsan and under tsan, and the fuzz targets' seeds
	@$(install) build check fuzz
	@scripts/check.py --jobs $(jobs) asan+ubsan tsan

check-gpu-builds: ## compile every GPU source with nvcc (where there is one) and hipcc
	@$(install) build gpu-builds
	@scripts/check.py --jobs $(jobs) gpu-builds

check-gpu-on-cpu: ## the tests of CUDA kernels, run on this CPU under the address sanitizer
	@$(install) build check gpu-on-cpu
	@scripts/check_gpu_on_cpu.sh $(jobs)

gpu-kit: ## tests and benchmark for another machine with a GPU, in .gpukit/kit
	@$(install) build check
	@scripts/gpu_kit.sh $(jobs)

fuzz: ## run each fuzz target FUZZ_RUNS times (200000), or for FUZZ_SECONDS
	@$(install) build fuzz
	@scripts/fuzz.sh $(jobs) $(FUZZ_RUNS) $(FUZZ_SECONDS)

bench: ## time similis beside its peers and renew docs/performance.md
	@$(install) build bench
	@scripts/configure.sh release -DSIMILIS_BUILD_BENCHMARKS=ON
	@cmake --build build --parallel $(jobs) --target similis_bench similis
	@.venv/bin/python bench/compare_peers.py
	@.venv/bin/python bench/performance_page.py

docs: ## the reference of C++, C and Python, in build/reference/html
	@$(install) build check docs
	@scripts/configure.sh release
	@cmake --build build --parallel $(jobs) --target similis_python
	@.venv/bin/python scripts/reference.py build

tidy: ## clang-tidy over what is shipped
	@$(install) build tidy
	@scripts/configure.sh release
	@run-clang-tidy-14 -quiet -p build -j $(jobs) '/src/(?!.*_(test|bench|fuzz)\.cc).*\.cc$$'

format: ## clang-format over every C++ file
	@$(install) check
	@git ls-files --cached --others --exclude-standard '*.h' '*.hpp' '*.c' '*.cc' '*.cu' '*.cuh' | xargs clang-format-14 -i

clean: ## remove build/ and .venv/
	rm -rf build .venv
