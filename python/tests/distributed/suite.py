# SPDX-License-Identifier: Apache-2.0
import cases
import mistakes


def main():
    cases.halos_and_traffic()
    cases.fields()
    cases.labels_and_grids()
    cases.transforms()
    cases.reaches()
    cases.measures()
    cases.information()
    cases.windows()
    cases.levels()
    cases.smoothing()
    cases.registration()
    cases.dtensors()
    mistakes.main()
