"""The kernels on a GPU: the same decisions and the same bits as on a CPU.

`kernels` says which kernel takes a job, `job_records` turns jobs into the records that it reads, `launch` makes
outcomes of what it returns, and `card` compiles and launches it with CuPy. The kernels themselves are one CUDA C++
source, `source/kernels.cu`, which also compiles as plain C++.
"""
