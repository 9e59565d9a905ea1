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
PyObject* PyBool_FromLong(long number);
int PyBytes_AsStringAndSize(PyObject* bytes, char** start, std::ptrdiff_t* size);
void* PyCapsule_GetPointer(PyObject* capsule, const char* name);
PyObject* PyCFunction_NewEx(PyMethodDef* method, PyObject* self, PyObject* module);
void PyErr_Clear();
PyObject* PyErr_Occurred();
void PyErr_SetString(PyObject* kind, const char* sentence);
void* PyEval_SaveThread();
void PyEval_RestoreThread(void* thread);
long long PyLong_AsLongLong(PyObject* number);
PyObject* PyLong_FromLong(long number);
PyObject* PyObject_CallFunctionObjArgs(PyObject* function, ...);
PyObject* PyObject_GetAttr(PyObject* object, PyObject* name);
int PyObject_IsTrue(PyObject* object);
PyObject* PyObject_Type(PyObject* object);
PyObject* PyTuple_GetItem(PyObject* tuple, std::ptrdiff_t place);
PyObject* PyTuple_New(std::ptrdiff_t count);
int PyTuple_SetItem(PyObject* tuple, std::ptrdiff_t place, PyObject* object);
std::ptrdiff_t PyTuple_Size(PyObject* tuple);
PyObject* PyUnicode_InternFromString(const char* text);
void Py_DecRef(PyObject* object);
void Py_IncRef(PyObject* object);
}
