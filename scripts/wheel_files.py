# SPDX-License-Identifier: Apache-2.0
"""Wheels with other files than their build gave them, and with the record of these."""

import base64
import copy
import hashlib
import zipfile


def _record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def dist_info(source):
    """The folder in a wheel that describes it, "similis-0.1.0.dist-info"."""
    return next(name for name in source.namelist() if name.endswith(".dist-info/RECORD"))[:-7]


def rewritten(wheel, folder, changes):
    """Writes the wheel into a folder and returns its path. changes(source): {name in the wheel: new
    data} of files that are added or replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        zipfile.ZipFile(wheel) as source,
        zipfile.ZipFile(folder / wheel.name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target,
    ):
        given = {name: data for name, data in sorted(changes(source).items())}
        record = f"{dist_info(source)}/RECORD"
        for item in source.infolist():
            if item.filename != record and item.filename not in given:
                data = source.read(item)
                target.writestr(copy.copy(item), data, zipfile.ZIP_DEFLATED)
        lines = source.read(record).decode().splitlines(keepends=True)
        lines = [line for line in lines if line.split(",")[0] not in given]
        for name, data in given.items():
            target.writestr(name, data)
            lines.insert(0, _record_line(name, data))
        target.writestr(record, "".join(lines))
    return folder / wheel.name
