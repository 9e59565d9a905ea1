// SPDX-License-Identifier: Apache-2.0
// The part of Python's stable ABI that the binding uses, declared here: the build then needs no
// headers of Python, and the binding fits any Python from 3.10 on.
#pragma once

#include <cstddef>

extern "C" {
struct PyObject;
using PyFunction = PyObject* (*)(PyObject* self, PyObject* const* arguments, std::ptrdiff_t count);
struct PyMethodDef {
  const char* name;
  PyFunction function;
  int flags;
  const char* words;
};
extern PyObject _Py_NoneStruct;
extern PyObject* PyExc_TypeError;
void* PyCapsule_GetPointer(PyObject* capsule, const char* name);
PyObject* PyCFunction_NewEx(PyMethodDef* method, PyObject* self, PyObject* module);
PyObject* PyErr_Occurred();
void PyErr_SetString(PyObject* kind, const char* sentence);
void* PyEval_SaveThread();
void PyEval_RestoreThread(void* thread);
long long PyLong_AsLongLong(PyObject* number);
PyObject* PyLong_FromLong(long number);
PyObject* PyTuple_New(std::ptrdiff_t count);
int PyTuple_SetItem(PyObject* tuple, std::ptrdiff_t place, PyObject* object);
}
