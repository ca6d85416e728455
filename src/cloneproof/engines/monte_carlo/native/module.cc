// The kernels for cores, one file, called by ctypes; see library.py.
#include "stepping.h"

// The digest of the sources that this was built from (build.py).
extern "C" const char* sources() { return "\0cloneproof sources " CLONEPROOF_SOURCES; }
