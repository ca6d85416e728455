"""The kernels on a GPU: the same decisions and the same bits as on a CPU.

`job_records` turns jobs into the records that the kernels read, `kernels` says which kernel takes a job, `card` compiles
and launches them with CuPy, and `engine` makes outcomes of what they return. The kernels themselves are one CUDA C++
source, `source/kernels.cu`, which also compiles as plain C++.
"""
