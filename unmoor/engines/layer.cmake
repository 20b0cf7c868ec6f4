# What runs in the user's Python is compiled in, so that the one program is all there is to install.
embed_files(unmoor_engines NAMESPACE embedded FILES unmoor/engines/python/start.py unmoor/engines/python/probe.py unmoor/engines/python/serve.py unmoor/engines/python/onnx_file.py
            unmoor/engines/python/onnxruntime_engine.py unmoor/engines/python/torch_engine.py unmoor/engines/python/torch_program.py
            unmoor/engines/python/file_engine.py unmoor/engines/python/samples.py unmoor/engines/python/dump_script.py
            unmoor/engines/python/source_rules.py unmoor/engines/python/source_patch.py unmoor/engines/python/source_scan.py)
target_include_directories(unmoor_engines SYSTEM PRIVATE "${UNMOOR_RE2_INCLUDE}")
target_link_libraries(unmoor_engines PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
