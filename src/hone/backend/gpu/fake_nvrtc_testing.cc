// NVRTC without a compiler, for tests of the processes that compile: its code is the number of the
// process, how often it compiled, and the source. Words in the source make it fail, crash, hang, or
// wait until other processes have begun as well.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

struct Program {
  std::string source, log, code;
};

Program& program_of(void* handle) { return *static_cast<Program*>(handle); }

int copy(const std::string& text, char* out) {
  std::memcpy(out, text.c_str(), text.size());
  return 0;
}

// "MEET folder 2": waits until two processes have a file there.
void meet(const std::string& source) {
  char folder[512] = "";
  int others = 0;
  if (std::sscanf(source.c_str(), "MEET %511s %d", folder, &others) != 2) return;
  std::ofstream(std::string(folder) + "/" + std::to_string(getpid())).put('1');
  const auto here = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  while (here() < others) usleep(1000);
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 1, *minor = 0;
  return 0;
}
int nvrtcCreateProgram(void** out, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  *out = new Program{source, "", ""};
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  return 0;
}
int nvrtcCompileProgram(void* handle, int, const char* const*) {
  Program& program = program_of(handle);
  const std::string& source = program.source;
  if (source == "CRASH") raise(SIGSEGV);
  while (source == "HANG") pause();
  for (volatile int turns = 0; source == "SPIN"; turns = turns + 1) {
  }
  meet(source);
  program.log = source == "FAIL" ? "a word that is not known" : "";
  static int count = 0;
  program.code = std::to_string(getpid()) + "." + std::to_string(++count) + " " + source;
  return source == "FAIL" ? 6 : 0;
}
int nvrtcGetProgramLogSize(void* program, size_t* size) {
  *size = program_of(program).log.size();
  return 0;
}
int nvrtcGetProgramLog(void* program, char* out) { return copy(program_of(program).log, out); }
int nvrtcGetCUBINSize(void* program, size_t* size) {
  *size = program_of(program).code.size();
  return 0;
}
int nvrtcGetCUBIN(void* program, char* out) { return copy(program_of(program).code, out); }
int nvrtcGetPTXSize(void*, size_t* size) {
  *size = 0;
  return 0;
}
int nvrtcGetPTX(void*, char*) { return 0; }
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }

}  // extern "C"
