#include "worker/worker.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "worker/session.h"

namespace berth {

int RunWorker() {
  // Whoever asks may be killed; nobody would want the answer then.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Answers alone go where the asker reads; what libraries print goes to standard error.
  const int out = ::dup(STDOUT_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  WorkerSession session;
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json question = nlohmann::json::parse(line, nullptr, false);
    std::string answer = question.is_object()
                             ? session.Answer(question).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                             : std::string(R"({"error":"the question is no JSON object"})");
    answer += '\n';
    for (size_t sent = 0; sent < answer.size();) {
      const ssize_t count = ::write(out, answer.data() + sent, answer.size() - sent);
      if (count <= 0) return 1;
      sent += static_cast<size_t>(count);
    }
  }
  // Without the destructors of libraries, which threads of theirs may outlive.
  ::_exit(0);
}

}  // namespace berth
