// Substitutes for launchers set the environment variables of Slurm, torchrun and Kubernetes, and start the program on
// hosts that are network namespaces. The tests run the job script and the manifest of samples/multi_node.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <regex>

#include "core/base/expect.h"
#include "support/host_network.h"
#include "support/joined.h"
#include "support/paths.h"

namespace hctr::test {
namespace {

const std::filesystem::path kSample = source_dir() / "samples/multi_node";

/// Shell code shared by all launchers below.
constexpr const char* kWaitForAll = R"(code=0
for process in $(jobs -p); do wait $process || code=$?; done
exit $code
)";

/// sbatch: parses the #SBATCH comments of the script, and runs the script on the first host with Slurm's job variables.
constexpr const char* kSbatch = R"(script=$1; shift
option() { sed -n "s/^#SBATCH --$1=//p" "$script"; }
export SLURM_JOB_ID=${JOB:-4711} SLURM_JOB_NUM_NODES=${HOSTS:-$(option nodes)} SLURM_NTASKS_PER_NODE=$(option ntasks-per-node)
export SLURM_NNODES=$SLURM_JOB_NUM_NODES SLURM_JOB_NODELIST=host[0-$((SLURM_JOB_NUM_NODES - 1))] SLURM_PROCID=0 SLURM_LOCALID=0
export SLURM_NTASKS=$((SLURM_JOB_NUM_NODES * SLURM_NTASKS_PER_NODE)) SLURM_NODELIST=$SLURM_JOB_NODELIST
exec on_host 0 bash "$script" "$@"
)";

/// srun: runs the tasks of a job step on each host of the job.
constexpr const char* kSrun = R"(while [[ $1 == -* ]]; do shift; done
export SLURM_STEP_ID=0 SLURM_STEPID=0 SLURM_STEP_NUM_TASKS=$SLURM_NTASKS SLURM_STEP_NODELIST=$SLURM_JOB_NODELIST
for ((p = 0; p < SLURM_NTASKS; ++p)); do
  host=$((p / SLURM_NTASKS_PER_NODE))
  SLURM_PROCID=$p SLURM_NODEID=$host SLURM_LOCALID=$((p % SLURM_NTASKS_PER_NODE)) on_host $host "$@" &
done
)";

/// Runs srun --mpi=pmix by mpirun, whose PMIx server replaces that of Slurm. Open MPI's own variables are unset; PMIx
/// variables remain.
constexpr const char* kSrunPmix = R"(while [[ $1 == -* ]]; do shift; done
exec /usr/bin/mpirun --allow-run-as-root --oversubscribe --bind-to none --mca plm_rsh_agent "$SSH" --mca btl tcp,self \
  --host host0:2,host1:2 --wdir "$PWD" env -u OMPI_COMM_WORLD_SIZE -u OMPI_COMM_WORLD_RANK -u OMPI_COMM_WORLD_LOCAL_SIZE \
  -u OMPI_COMM_WORLD_LOCAL_RANK -u OMPI_UNIVERSE_SIZE SLURM_JOB_ID=4711 SLURM_STEP_ID=0 SLURM_NTASKS=4 \
  SLURM_STEP_NUM_TASKS=4 "$@"
)";

/// Starts torchrun --nnodes=N --nproc-per-node=P --rdzv-endpoint=HOST:PORT --no-python COMMAND... on all hosts.
constexpr const char* kTorchrun = R"(while [[ $1 == -* ]]; do
  case $1 in
    --nnodes=*) nodes=${1#*=} ;;
    --nproc-per-node=*) per=${1#*=} ;;
    --rdzv-endpoint=*) at=${1#*=} ;;
  esac
  shift
done
export WORLD_SIZE=$((nodes * per)) LOCAL_WORLD_SIZE=$per MASTER_ADDR=${at%:*} MASTER_PORT=${at#*:} GROUP_WORLD_SIZE=$nodes \
  TORCHELASTIC_RUN_ID=none OMP_NUM_THREADS=1
for ((p = 0; p < WORLD_SIZE; ++p)); do
  RANK=$p LOCAL_RANK=$((p % per)) GROUP_RANK=$((p / per)) on_host $((p / per)) "$@" &
done
)";

class Launchers : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_ / "bin");
    write_file(folder_ / "data.json", small_config());
    make_data(folder_.path(), "data.json", 3000, 300, {"--vocabulary", "300"});
  }
  std::string config(const std::string& gpu, const std::string& name) {
    const std::string saves =
        with_change(small_config(), "\"solver\": {", R"("solver": {"checkpoint": {"every": 1000}, )");
    const std::string short_run = with_change(saves, "\"max_iter\": 60", "\"max_iter\": 30");
    return with_change(with_change(short_run, "\"gpu\": [0]", "\"gpu\": " + gpu), "\"out/\"", "\"" + name + "/\"");
  }
  /// Writes a launcher script to the folder in PATH. Launchers call each other and on_host by name.
  void add_launcher(const std::string& name, const std::string& text) {
    write_file(folder_ / "bin" / name, "#!/bin/bash\n" + text);
    std::filesystem::permissions(folder_ / "bin" / name, std::filesystem::perms::owner_all);
  }
  Outcome launch(const HostNetwork& hosts, const std::string& command) {
    return run_program(
        "/bin/bash", {"-c", command}, folder_.path(),
        {{"PATH", cat((folder_ / "bin").string(), ":", folder_.path().string(), ":/usr/sbin:/usr/bin:/sbin:/bin")},
         {"HUGE_CTR", (bin_dir() / "huge_ctr").string()},
         {"SSH", hosts.ssh().string()},
         {"ASAN_OPTIONS", "detect_leaks=0"}});
  }
  /// Expects that the job trained on `hosts` hosts with two ranks each, and that its model equals the model of a single
  /// process.
  void expect_model_of_one_process(const Outcome& outcome, int hosts, int processes) {
    ASSERT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
    EXPECT_TRUE(
        std::regex_search(outcome.err, std::regex(cat(2 * hosts, " ranks of huge_ctr .* on ", hosts, " hosts:"))))
        << outcome.err;
    EXPECT_NE(outcome.err.find(cat(2 * hosts, " ranks in ", processes, " processes.")), std::string::npos)
        << outcome.err;
    write_file(folder_ / "one.json", config(hosts == 2 ? "[0, 1, 2, 3]" : "[0, 1, 2, 3, 4, 5]", "one"));
    ASSERT_EQ(
        run_program("huge_ctr", {"--train", "one.json", "--run-dir", "one-run", "--device", "cpu"}, folder_.path())
            .exit_code,
        0);
    for (const char* file : {"_dense_30.model", "0_sparse_30.model", "1_sparse_30.model"})
      EXPECT_EQ(read_file(folder_ / "out" / file), read_file(folder_ / "one" / file)) << file;
    std::filesystem::remove_all(folder_ / "out");
    std::filesystem::remove_all(folder_ / "ckpt");
  }

  TemporaryFolder folder_;
};

TEST_F(Launchers, SbatchRunsTheScriptOfTheSample) {
  add_launcher("sbatch", kSbatch);
  add_launcher("srun", cat(kSrun, kWaitForAll));
  write_file(folder_ / "config.json", config("[0, 1]", "out"));  // two GPUs per host
  const std::string command = cat("sbatch ", (kSample / "slurm.sh").string());
  for (const int count : {2, 3}) {
    SCOPED_TRACE(count);
    const HostNetwork hosts(count, folder_.path());
    HCTR_SKIP_WITHOUT_HOSTS(hosts);
    const std::string more_hosts = count == 2 ? "" : "HOSTS=3 JOB=4712 ";  // the script itself requests two hosts
    const Outcome outcome = launch(hosts, cat(more_hosts, command, " config.json --device cpu"));
    EXPECT_NE(outcome.err.find(cat(count, " processes joined over TCP, on host0 (1), host1 (1)")), std::string::npos)
        << outcome.err;
    EXPECT_EQ(outcome.err.find("can join this job"), std::string::npos) << outcome.err;
    expect_model_of_one_process(outcome, count, count);
    EXPECT_TRUE(std::filesystem::exists(folder_ / (count == 2 ? "run-4711" : "run-4712") / "summary.json"));
    if (count == 2) {
      const Outcome none = launch(hosts, command);
      EXPECT_EQ(none.exit_code, 2);
      EXPECT_NE(none.err.find("slurm.sh CONFIG [OPTIONS]"), std::string::npos) << none.err;
    }
  }
}

TEST_F(Launchers, SrunWithPmixIsJoinedByMpi) {
  HCTR_SKIP_WITHOUT_MPI();
  const HostNetwork hosts(2, folder_.path());
  HCTR_SKIP_WITHOUT_HOSTS(hosts);
  add_launcher("srun", kSrunPmix);
  write_file(folder_ / "config.json", config("[0, 1]", "out"));  // two GPUs per host; MPI numbers the processes
  const Outcome outcome =
      launch(hosts, "on_host 0 srun --mpi=pmix $HUGE_CTR --train config.json --run-dir run --device cpu");
  EXPECT_EQ(outcome.err.find("over TCP"), std::string::npos) << outcome.err;
  expect_model_of_one_process(outcome, 2, 4);
}

TEST_F(Launchers, TorchrunStartsAProcessForEachRank) {
  add_launcher("torchrun", cat(kTorchrun, kWaitForAll));
  write_file(folder_ / "config.json", config("\"all\"", "out"));
  for (const int count : {2, 3}) {
    SCOPED_TRACE(count);
    const HostNetwork hosts(count, folder_.path());
    HCTR_SKIP_WITHOUT_HOSTS(hosts);
    const Outcome outcome = launch(hosts, cat("torchrun --nnodes=", count,
                                              " --nproc-per-node=2 --rdzv-endpoint=host0:29500 --no-python $HUGE_CTR "
                                              "--train config.json --run-dir run --device cpu"));
    EXPECT_NE(outcome.err.find(cat(2 * count, " processes joined over TCP, on host0 (2), host1 (2)")),
              std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find("warning: any process that reaches port 29500 of host0"), std::string::npos)
        << outcome.err;
    expect_model_of_one_process(outcome, count, 2 * count);
  }
}

/// A substitute for a kubelet runs the manifest's pods. Each pod is a host with the name, environment, folders and
/// arguments of the pod.
TEST_F(Launchers, KubernetesRunsThePodsOfTheManifest) {
  YAML::Node service, job;
  for (const YAML::Node& document : YAML::LoadAllFromFile((kSample / "kubernetes.yaml").string()))
    (document["kind"].as<std::string>() == "Job" ? job : service) = document;
  ASSERT_EQ(job["spec"]["completionMode"].as<std::string>(), "Indexed");
  const int pods = job["spec"]["completions"].as<int>();
  EXPECT_EQ(job["spec"]["parallelism"].as<int>(), pods) << "all must run at once";
  const YAML::Node pod = job["spec"]["template"]["spec"], container = pod["containers"][0];
  const std::string job_name = job["metadata"]["name"].as<std::string>();
  // Pods have DNS names in the domain of a headless service that selects them.
  EXPECT_EQ(pod["subdomain"].as<std::string>(), service["metadata"]["name"].as<std::string>());
  EXPECT_EQ(service["spec"]["clusterIP"].as<std::string>(), "None");
  EXPECT_EQ(service["spec"]["selector"]["job-name"].as<std::string>(), job_name);

  HostNetwork hosts(pods, folder_.path());
  HCTR_SKIP_WITHOUT_HOSTS(hosts);
  for (int p = 0; p < pods; ++p) hosts.add_name(p, cat(job_name, "-", p, ".", pod["subdomain"].as<std::string>()));

  // The host folder of each volume of the pod.
  std::map<std::string, std::string> folder_of;
  for (const YAML::Node& mount : container["volumeMounts"]) {
    bool known = false;
    for (const YAML::Node& volume : pod["volumes"])
      known |= volume["name"].as<std::string>() == mount["name"].as<std::string>();
    EXPECT_TRUE(known) << mount["name"].as<std::string>();
    folder_of[mount["mountPath"].as<std::string>()] = folder_.path().string();
  }
  ASSERT_TRUE(folder_of.contains(container["workingDir"].as<std::string>()));
  std::string command;
  for (const YAML::Node& word : container["args"]) {
    std::string text = word.as<std::string>();
    if (text.starts_with("/")) {
      const std::string folder = text.substr(0, text.find('/', 1));
      ASSERT_TRUE(folder_of.contains(folder)) << text << " is on no volume";
      text = folder_of[folder] + text.substr(folder.size());
    }
    command += (command.empty() ? "" : " ") + text;
  }
  ASSERT_TRUE(command.starts_with("huge_ctr ")) << command;
  std::string start;
  for (int p = 0; p < pods; ++p) {
    start += cat("on_host ", p, " env JOB_COMPLETION_INDEX=", p, " ");
    for (const YAML::Node& variable : container["env"]) {
      std::string value;
      if (variable["value"]) {
        value = variable["value"].as<std::string>();
      } else if (const YAML::Node secret = variable["valueFrom"]["secretKeyRef"]) {
        const std::string option = cat("kubectl create secret generic ", secret["name"].as<std::string>(),
                                       " --from-literal=", secret["key"].as<std::string>(), "=");
        EXPECT_NE(read_file(kSample / "kubernetes.yaml").find(option), std::string::npos) << option;
        value = "a-secret-of-the-cluster";
      } else {
        ASSERT_EQ(variable["valueFrom"]["fieldRef"]["fieldPath"].as<std::string>(),
                  "metadata.annotations['batch.kubernetes.io/job-completion-index']");
        value = std::to_string(p);
      }
      start += cat(variable["name"].as<std::string>(), "=", value, " ");
    }
    start += cat((bin_dir() / command).string(), " --device cpu &\n");
  }
  write_file(folder_ / "config.json", config("[0, 1]", "out"));
  const Outcome outcome = launch(hosts, start + kWaitForAll);
  EXPECT_EQ(outcome.err.find("can join this job"), std::string::npos) << outcome.err;
  expect_model_of_one_process(outcome, pods, pods);
}

}  // namespace
}  // namespace hctr::test
