"""Functions inside the kernels, as tests ask for them."""

from ctypes import c_double, c_int64

from cloneproof.runs.native.library import library


def _function(name, back, *arguments):
    def called(*given):
        function = getattr(library(), name)
        function.restype, function.argtypes = back, arguments
        return function(*given)

    return called


nearby_index = _function("index_nearby", c_double, c_int64, c_int64, c_double, c_double)
pulls_at = _function("pulls_until", c_double, c_int64, c_double, c_double)
sure_pulls = _function("pulls_for_sure", c_int64, c_int64, c_int64, c_double, c_double, c_int64)
log_chance = _function("log_probability", c_double, c_int64, c_int64, c_double)
average = _function("average_of", c_double, c_int64, c_int64, c_double)
ticks = _function("ticks_of", c_int64, c_double, c_double)
