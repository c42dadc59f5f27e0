// compile.h - makes a native library of an ONNX model without measuring: each kernel gets the best
// schedule that is known from records, or else the best one that a cost model predicts.
//
//   hone::Result<hone::CompileSummary> made = hone::compile("resnet18.onnx", "resnet18.so");
#pragma once

#include <string>

#include "hone/export.h"
#include "hone/options.h"
#include "hone/status.h"
#include "hone/summary.h"

namespace hone {

// Compiles the model at the path `model` and writes its library to the path `output`, which takes
// its place only when it is complete. It takes seconds: a part of one for a small network, tens for
// one with hundreds of distinct kernels. Bad input is Code::kInvalid, kNotFound or kUnsupported,
// and an interruption kCancelled; nothing is written then.
[[nodiscard]] HONE_API Result<CompileSummary> compile(const std::string& model,
                                                      const std::string& output,
                                                      const CompileOptions& options = {});

// Returns the path of the C header that LibraryOptions::header writes: model.h for model.so.
[[nodiscard]] HONE_API std::string header_path(const std::string& output);

}  // namespace hone
