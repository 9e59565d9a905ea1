# SPDX-License-Identifier: Apache-2.0
import cases
import dtensors
import footprints
import further
import masks
import mistakes
import reaches
import registrations


def main():
    cases.halos_and_traffic()
    cases.fields()
    cases.labels_and_grids()
    cases.transforms()
    reaches.main()
    cases.measures()
    cases.information()
    cases.windows()
    cases.levels()
    cases.smoothing()
    masks.main()
    further.main()
    registrations.main()
    dtensors.main()
    cases.compare_ranks()
    mistakes.main()
    footprints.main()
