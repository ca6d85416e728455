"""Kernels on a GPU: the same decisions and the same bits as on a CPU.

`records` chooses the kernel of a job, makes the records that it reads and decides whether a GPU pays. `launch` compiles
and launches it with CuPy. The kernels are one CUDA C++ source, `source/kernels.cu`, which also compiles as plain C++.
"""
