// Tests which prefixes an artifact may have, and that its functions call each other whatever else
// is in the process.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <set>
#include <sstream>

#include "hone/artifact/artifact_testing.h"
#include "hone/artifact/interface_names.h"
#include "hone/artifact/system_symbols.h"
#include "hone/model.h"

namespace hone::artifact {
namespace {

using testing::filter_spec;
using testing::Folder;

std::string run_command(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string text;
  char part[4096];
  while (const size_t got = std::fread(part, 1, sizeof part, pipe)) text.append(part, got);
  const int code = pclose(pipe);
  return code == 0 ? text : text + "exit code " + std::to_string(code);
}

std::string message(const std::string& prefix) { return check_prefix(prefix).message(); }

TEST(prefix, names_of_the_languages_are_refused) {
  for (const char* prefix :
       {"int",   "class",    "typeof",   "char8_t",  "size_t",           "uint8_t", "int_fast16_t",
        "key_t", "SIZE_MAX", "INT8_MIN", "UINT64_C", "HONE_ABI_VERSION", "NULL",    "main",
        "linux", "std",      "_net",     "__net",    "my__net",          "net_"}) {
    EXPECT_NE(message(prefix).find("which C, C++ or libc uses"), std::string::npos) << prefix;
  }
}

TEST(prefix, names_of_libc_are_refused_with_the_symbol_and_its_library) {
  EXPECT_EQ(message("sem"),
            "found prefix 'sem', which C, C++ or libc uses (sem_destroy is in libc.so.6), expected "
            "another identifier");
  for (const auto& [prefix, symbol] : std::vector<std::pair<std::string, std::string>>{
           {"pthread", "pthread_create"},
           {"pthread_mutex", "pthread_mutex_destroy"},
           {"epoll", "epoll_create"},
           {"memfd", "memfd_create"},
           {"timer", "timer_create"},
           {"timerfd", "timerfd_create"},
           {"re_syntax", "re_syntax_options"},
           // Only in programs that are linked already; no new one can be linked to it.
           {"svc", "svc_run"},
           {"open", "open"},
           {"sin", "sin"}}) {
    EXPECT_NE(message(prefix).find(symbol + " is in lib"), std::string::npos)
        << prefix << ": " << message(prefix);
  }
}

TEST(prefix, other_identifiers_are_taken) {
  for (const char* prefix : {"hone_model", "hone", "net", "Net_2", "detector", "second_net", "mq",
                             "sem2", "task", "model", "size", "i", "x86"})
    EXPECT_EQ(message(prefix), "") << prefix;
}

// libc itself says which prefixes it uses.
TEST(prefix, every_symbol_of_libc_is_found) {
  void* library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr) << dlerror();
  link_map* libc = nullptr;
  ASSERT_EQ(dlinfo(library, RTLD_DI_LINKMAP, &libc), 0);
  std::istringstream listing(
      run_command(std::string("nm -D --defined-only --format=posix ") + libc->l_name));
  std::set<std::string> symbols, suffixes;
  for (std::string line; std::getline(listing, line);) {
    const std::string name = line.substr(0, line.find_first_of(" @"));
    if (line.substr(line.find(' ') + 1, 1) != "A") symbols.insert(name);  // A: a version's name
  }
  if (symbols.size() < 1000) GTEST_SKIP() << "there is no nm";
  for (const std::string& function : interface_functions())
    suffixes.insert(exported_name(function, "x").substr(1));
  suffixes.insert({"_options", "_task", "_parallel_for"});
  int refused = 0, taken = 0;
  for (const std::string& symbol : symbols) {
    EXPECT_TRUE(system_library_of(symbol).has_value()) << symbol;
    const size_t underscore = symbol.rfind('_');
    if (underscore == std::string::npos || underscore == 0) continue;
    const std::string prefix = symbol.substr(0, underscore);
    if (prefix[0] == '_' || prefix.back() == '_' || prefix.find("__") != std::string::npos)
      continue;
    bool used = false;
    for (const std::string& suffix : suffixes) used |= symbols.contains(prefix + suffix);
    const Status status = check_prefix(prefix);
    if (used) {
      EXPECT_FALSE(status.ok()) << prefix;
      ++refused;
    } else if (!symbols.contains(prefix)) {
      EXPECT_EQ(status.message().find("is in libc"), std::string::npos) << status.message();
      taken += status.ok();  // not if the cut left a keyword, or a name of libm
    }
  }
  EXPECT_GT(refused, 15);
  EXPECT_GT(taken, 100);
}

// Another library that is loaded before, with a function of the interface under the same name.
TEST(prefix, functions_of_another_library_take_no_part) {
  const Folder folder;
  const ArtifactSpec spec = filter_spec(testing::read_file(HONE_TEST_KERNELS));
  ASSERT_TRUE(write_shared_library(spec, folder.file("model.so")).ok());
  std::ofstream(folder.file("other.c")) << "int hone_model_num_inputs(void) { return 0; }\n";
  ASSERT_EQ(run_command("cd " + folder.path() + " && cc -shared -fPIC -o other.so other.c"), "");
  void* other = dlopen(folder.file("other.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(other, nullptr) << dlerror();
  void* library = dlopen(folder.file("model.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto create = reinterpret_cast<int (*)(void**, int)>(dlsym(library, "hone_model_create"));
  const auto input_name =
      reinterpret_cast<const char* (*)(void*, int)>(dlsym(library, "hone_model_input_name"));
  const auto destroy = reinterpret_cast<void (*)(void*)>(dlsym(library, "hone_model_destroy"));
  void* model = nullptr;
  ASSERT_EQ(create(&model, 1), 0);
  const char* name = input_name(model, 0);
  EXPECT_STREQ(name, "x") << "it asked the other library how many inputs there are";
  destroy(model);
  dlclose(library);
  dlclose(other);
}

// In a static library no call can be bound to another function later, either.
TEST(prefix, functions_of_a_static_library_call_each_other_directly) {
  const Folder folder;
  const ArtifactSpec spec = filter_spec(testing::read_file(HONE_TEST_KERNELS));
  ASSERT_TRUE(write_static_library(spec, folder.file("model.a")).ok());
  const std::string relocations = run_command("readelf -rW " + folder.file("model.a"));
  EXPECT_NE(relocations.find("memcpy"), std::string::npos) << relocations;
  EXPECT_EQ(relocations.find(" hone_model_num_"), std::string::npos) << relocations;
}

}  // namespace
}  // namespace hone::artifact
