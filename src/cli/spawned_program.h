// SPDX-License-Identifier: Apache-2.0
// Runs the real program the way a shell does.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "src/media/picture/test_pictures.h"

namespace similis::cli {

struct Outcome {
  int status = -1;  ///< of exit; 128 + N if signal N ended it
  std::string out, err;
  long peak_kilobytes = 0;  ///< resident
};

/// Runs argv[0] in a folder with what `input` holds as its standard input.
inline Outcome spawn(const media::TestFolder& folder, const std::vector<std::string>& argv,
    const media::Buffer& input = {}) {
  const std::string in = folder.file(".in"), out = folder.file(".out"), err = folder.file(".err");
  media::write_content(in, input);
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(open(in.c_str(), O_RDONLY), STDIN_FILENO);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    if (chdir(folder.file("").c_str()) == 0) execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  const auto text = [](const std::string& path) {
    const media::Buffer bytes = media::content(path);
    return std::string(bytes.begin(), bytes.end());
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text(out), text(err),
      usage.ru_maxrss};
}

}  // namespace similis::cli
