// settings.h - what a user says about the provider when a session is made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hone/options.h"

#include "ort_call.h"

namespace hone::ort {

inline constexpr std::string_view kProviderName = "HoneExecutionProvider";

struct Settings {
  double budget = 0;  // seconds of tuning for all parts of the model; 0: nothing is measured
  int threads = 0;    // 0: all cores that the process may use
  RecordOptions records;
  std::string accuracy = TargetOptions().accuracy;
  ModelOptions model;  // shapes and ranges only
  // A part that cannot be compiled is an error, and is not left to other providers.
  bool must_compile = false;

  // ONNX Runtime's own options of a model that keeps what was compiled.
  bool write_context = false;
  bool embed_context = false;  // in the model, and not in a file beside it
  std::string context_path;    // of the model; empty: chosen by the original's
};

// Reads the options of a session. An unknown one of the provider, or a value that an option does
// not take, is Code::kInvalid and named.
[[nodiscard]] Result<Settings> read_settings(const OrtApi& api, const OrtSessionOptions* options);
// Sets one option of the provider.
[[nodiscard]] Status set_option(const std::string& key, const std::string& value,
                                Settings& settings);

}  // namespace hone::ort
