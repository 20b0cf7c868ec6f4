// The headers of tests/CMakeLists.txt are compiled for this file, and read by all unit tests.
