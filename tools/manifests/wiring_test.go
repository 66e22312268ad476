package manifests

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// flags returns the flags among a command's arguments: the value of each by its name.
func flags(args []string) map[string]string {
	set := map[string]string{}
	for _, arg := range args {
		if name, value, ok := strings.Cut(arg, "="); ok {
			set[strings.TrimPrefix(name, "--")] = value
		}
	}
	return set
}

// wired checks that the processes of one place work together, each given by its flags: primary-registry and
// primary-access with writer, or replica-registry and replica-access with edge.
func wired(t *testing.T, processes map[string]map[string]string) {
	t.Helper()
	listens := map[string]string{}
	for name, set := range processes {
		require.Empty(t, listens[set["listen"]], "%s and another listen at %s", name, set["listen"])
		listens[set["listen"]] = name
	}
	for _, database := range []string{"registry", "access"} {
		port := map[string]string{"registry": "5181", "access": "5182"}[database]
		if primary := processes["primary-"+database]; primary != nil {
			require.Regexp(t, `/primary-`+database+`$`, primary["dir"])
			require.Regexp(t, `/`+database+`\.pub$`, primary["jwt-key"])
			require.Regexp(t, `/primary\.crt$`, primary["tls-cert"])
			require.Regexp(t, `/primary\.key$`, primary["tls-key"])
			require.Equal(t, "0.0.0.0:"+port, primary["replication"])
			require.Equal(t, "http://"+primary["listen"], processes["writer"][database], "the writer's %s", database)
		}
		if replica := processes["replica-"+database]; replica != nil {
			require.Regexp(t, `/replica-`+database+`$`, replica["dir"])
			require.Regexp(t, `/`+database+`-replica\.pub$`, replica["jwt-key"])
			require.Regexp(t, `/edge\.crt$`, replica["tls-cert"])
			require.Regexp(t, `/edge\.key$`, replica["tls-key"])
			primary, err := url.Parse(replica["primary"])
			require.NoError(t, err)
			require.Equal(t, "https centre "+port, primary.Scheme+" "+primary.Hostname()+" "+primary.Port(), database)
			require.Equal(t, "http://"+replica["listen"], processes["edge"][database], "the edge's %s", database)
			require.Equal(t, replica["dir"], processes["edge"][database+"-replica"], "the edge's file of %s", database)
		}
	}
	for name, set := range processes {
		if database, ok := strings.CutPrefix(name, "primary-"); ok || strings.HasPrefix(name, "replica-") {
			require.Regexp(t, `/ca\.crt$`, set["tls-ca"], name)
			require.Regexp(t, `^127\.0\.0\.1:`, set["listen"], "%s answers its own machine alone: %s", name, database)
		}
	}
}

// TestContainersOfAPodWorkTogether: each database has its own files, keys and addresses, and the service reads
// and writes that of its name.
func TestContainersOfAPodWorkTogether(t *testing.T) {
	for _, set := range readCluster(t).sets {
		processes := map[string]map[string]string{}
		for _, c := range set.Spec.Template.Spec.Containers {
			processes[c.Name] = flags(c.Args)
			command, _, _ := strings.Cut(c.Name, "-")
			require.Equal(t, command, c.Args[0], c.Name)
		}
		require.Len(t, processes, 3, set.Name)
		wired(t, processes)
	}
}

// TestAProbeAsksItsOwnContainer, which has time to start, and to answer while it is busy.
func TestAProbeAsksItsOwnContainer(t *testing.T) {
	for _, set := range readCluster(t).sets {
		for _, c := range set.Spec.Template.Spec.Containers {
			var ports []intstr.IntOrString
			for _, p := range c.Ports {
				ports = append(ports, intstr.FromInt32(p.ContainerPort), intstr.FromString(p.Name))
			}
			for kind, p := range map[string]*core.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
				where := c.Name + "'s " + kind
				switch {
				case p.HTTPGet != nil:
					require.Contains(t, ports, p.HTTPGet.Port, where)
					require.Equal(t, flags(c.Args)["tls-cert"] != "", p.HTTPGet.Scheme == core.URISchemeHTTPS, where)
				case p.TCPSocket != nil:
					require.Contains(t, ports, p.TCPSocket.Port, where)
				default:
					require.Equal(t, flags(c.Args)["listen"], flags(p.Exec.Command)["listen"], where)
				}
			}
			require.GreaterOrEqual(t, c.StartupProbe.FailureThreshold*c.StartupProbe.PeriodSeconds, int32(600), "%s has ten minutes, as its unit", c.Name)
			require.GreaterOrEqual(t, c.LivenessProbe.FailureThreshold, int32(6), c.Name)
			if c.LivenessProbe.Exec != nil {
				require.GreaterOrEqual(t, c.LivenessProbe.TimeoutSeconds, int32(10), "%s: a probe that is a process takes its time", c.Name)
			}
		}
	}
}

// TestAProbeIsAnswered: it asks for a path that its process serves, waits as long as the answer may take, and is not repeated
// so seldom that what it finds is old.
func TestAProbeIsAnswered(t *testing.T) {
	for _, set := range readCluster(t).sets {
		for _, c := range set.Spec.Template.Spec.Containers {
			for kind, p := range map[string]*core.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
				where := set.Name + "/" + c.Name + "'s " + kind
				require.LessOrEqual(t, p.PeriodSeconds, int32(30), where)
				require.Positive(t, p.PeriodSeconds, where)
				require.LessOrEqual(t, p.TimeoutSeconds, p.PeriodSeconds, where)
				require.Zero(t, p.InitialDelaySeconds, "%s: the startup probe is what waits", where)
				if p.Exec == nil {
					require.NotEqual(t, "replica", c.Args[0], "%s: nobody but its own machine reaches it", where)
					continue
				}
				require.Equal(t, "probe", p.Exec.Command[1], where)
				require.Equal(t, "/health", flags(p.Exec.Command)["path"], "%s: all that a replica answers without a token", where)
				require.GreaterOrEqual(t, p.TimeoutSeconds, int32(5), "%s: a probe that is a process takes its time, and has a second by default", where)
			}
			require.LessOrEqual(t, c.StartupProbe.FailureThreshold*c.StartupProbe.PeriodSeconds, int32(900), "%s: what never starts is begun anew", c.Name)
			require.LessOrEqual(t, c.LivenessProbe.FailureThreshold*c.LivenessProbe.PeriodSeconds, int32(300), "%s: what hangs is begun anew", c.Name)
			require.LessOrEqual(t, c.ReadinessProbe.FailureThreshold, int32(3), "%s: the default, or fewer", c.Name)
		}
	}
}

// TestAPodIsOfOneImage, that of its place; and each port has a name, by which services and probes find it.
func TestAPodIsOfOneImage(t *testing.T) {
	for _, set := range readCluster(t).sets {
		kind, _, _ := strings.Cut(set.Name, "-")
		require.Equal(t, set.Name, set.Spec.ServiceName)
		require.Equal(t, "regedge-"+kind, set.Labels["app"], set.Name)
		taken := map[int32]string{}
		for _, c := range set.Spec.Template.Spec.Containers {
			require.Equal(t, "regedge-"+kind+":VERSION", c.Image, c.Name)
			require.Equal(t, "regedge-"+kind, set.Spec.Template.Labels["app"])
			for _, p := range c.Ports {
				require.NotEmpty(t, p.Name, c.Name)
				require.Empty(t, taken[p.ContainerPort], "%s and another have port %d", c.Name, p.ContainerPort)
				taken[p.ContainerPort] = c.Name
				listens := []string{flags(c.Args)["listen"], flags(c.Args)["replication"], flags(c.Args)["metrics"]}
				require.Contains(t, listens, "0.0.0.0:"+strconv.Itoa(int(p.ContainerPort)), "%s listens there, for others", c.Name)
			}
		}
		storage := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage()
		require.GreaterOrEqual(t, storage.Value(), int64(20<<30), "%s: a registry of all of India, and a copy of it", set.Name)
	}
}

// TestAPodHasTheSecretsOfItsOwnNode: with those of another, it would be that, and an edge with the centre's an operator.
func TestAPodHasTheSecretsOfItsOwnNode(t *testing.T) {
	for _, set := range readCluster(t).sets {
		for _, v := range set.Spec.Template.Spec.Volumes {
			if v.Secret != nil {
				require.Equal(t, set.Name+"-trust", v.Secret.SecretName)
			}
		}
		for _, c := range set.Spec.Template.Spec.Containers {
			for _, from := range c.EnvFrom {
				require.Equal(t, set.Name, from.SecretRef.Name, c.Name)
			}
			for _, e := range c.Env {
				if e.Name == "GOMEMLIMIT" {
					require.Regexp(t, `^\d{3,5}MiB$`, e.Value, "%s: a number alone is bytes", c.Name)
				}
			}
		}
	}
}

// TestServicesLeadToThePortsOfTheirNames
func TestServicesLeadToThePortsOfTheirNames(t *testing.T) {
	cluster := readCluster(t)
	services := map[string]core.Service{}
	for _, s := range cluster.services {
		services[s.Name] = s
		for _, set := range cluster.sets {
			if !slices.Contains(cluster.selected(s.Spec.Selector), set.Name) {
				continue
			}
			ports := map[string]int32{}
			for _, c := range set.Spec.Template.Spec.Containers {
				for _, p := range c.Ports {
					ports[p.Name] = p.ContainerPort
				}
			}
			for _, p := range s.Spec.Ports {
				require.Equal(t, p.Name, p.TargetPort.String(), "service %s", s.Name)
				require.Contains(t, ports, p.Name, "service %s", s.Name)
				if s.Name != "lookups" { // by the port of its kind
					require.Equal(t, ports[p.Name], p.Port, "service %s: %s", s.Name, p.Name)
				}
			}
		}
	}
	require.Equal(t, []string{"regedge-centre"}, slices.Collect(maps.Values(services["centre"].Spec.Selector)))
	require.True(t, services["centre"].Spec.PublishNotReadyAddresses, "edges replicate while the writer is not ready")
	require.Equal(t, []string{"regedge-edge"}, slices.Collect(maps.Values(services["lookups"].Spec.Selector)), "lookups go to every edge")
	for _, set := range cluster.sets {
		of, ok := services[set.Spec.ServiceName]
		require.True(t, ok, set.Name)
		require.Equal(t, set.Spec.Selector.MatchLabels, of.Spec.Selector, "%s has a service of its own", set.Name)
	}
}

// TestStateOutlivesAPod: it is on the volume of one pod, and a pod that ends has time to write it.
func TestStateOutlivesAPod(t *testing.T) {
	for _, set := range readCluster(t).sets {
		require.Len(t, set.Spec.VolumeClaimTemplates, 1)
		claim := set.Spec.VolumeClaimTemplates[0]
		require.Equal(t, []core.PersistentVolumeAccessMode{core.ReadWriteOncePod}, claim.Spec.AccessModes, "%s: no second pod writes to it", set.Name)
		require.GreaterOrEqual(t, *set.Spec.Template.Spec.TerminationGracePeriodSeconds, int64(60), set.Name)
		for _, c := range set.Spec.Template.Spec.Containers {
			mounts := map[string]core.VolumeMount{}
			for _, m := range c.VolumeMounts {
				mounts[m.Name] = m
			}
			require.True(t, mounts["trust"].ReadOnly, c.Name)
			require.Equal(t, "/var/lib/regedge", mounts[claim.Name].MountPath, c.Name)
			require.False(t, mounts[claim.Name].ReadOnly, c.Name)
			for _, flag := range []string{"dir", "database", "state"} {
				if path := flags(c.Args)[flag]; path != "" {
					require.True(t, strings.HasPrefix(path, mounts[claim.Name].MountPath+"/"), "%s: %s", c.Name, path)
				}
			}
		}
	}
}

// TestAContainerHasWhatItsProcessNeeds of tokens and authorities, and collects garbage before its memory ends.
func TestAContainerHasWhatItsProcessNeeds(t *testing.T) {
	cluster := readCluster(t)
	needed := []string{"REGEDGE_TOKEN", "REGEDGE_ACCESS_TOKEN", "REGEDGE_REGISTRY_TOKEN"}
	services := 0
	for _, set := range cluster.sets {
		for _, c := range set.Spec.Template.Spec.Containers {
			env := map[string]string{}
			for _, e := range c.Env {
				env[e.Name] = e.Value
			}
			for _, from := range c.EnvFrom {
				services++
				require.ElementsMatch(t, needed, slices.Collect(maps.Keys(cluster.secrets[from.SecretRef.Name].StringData)), c.Name)
			}
			if flags(c.Args)["writer"] != "" {
				require.Equal(t, "/run/regedge/trust/ca.crt", env["SSL_CERT_FILE"], "%s trusts the centre's authority", c.Name)
			}
			if soft, ok := strings.CutSuffix(env["GOMEMLIMIT"], "MiB"); ok {
				mebibytes, err := strconv.ParseInt(soft, 10, 64)
				require.NoError(t, err)
				require.Less(t, mebibytes<<20, c.Resources.Limits.Memory().Value(), c.Name)
			}
		}
		scraped := set.Spec.Template.Annotations
		for _, c := range set.Spec.Template.Spec.Containers {
			if address := flags(c.Args)["metrics"]; address != "" {
				require.Equal(t, "true", scraped["prometheus.io/scrape"])
				require.Equal(t, "0.0.0.0:"+scraped["prometheus.io/port"], address, c.Name)
			}
		}
	}
	require.Equal(t, 2, services)
}

// TestPoliciesLetThroughWhatIsNeededAlone: edges reach all of the centre, operators its API, Prometheus the metrics of
// edges; and an edge reaches nothing but the centre and names.
func TestPoliciesLetThroughWhatIsNeededAlone(t *testing.T) {
	ports := func(list []network.NetworkPolicyPort) (numbers []int32) {
		for _, p := range list {
			numbers = append(numbers, p.Port.IntVal)
		}
		return numbers
	}
	// what a peer is: its labels; empty for anybody.
	said := func(peers []network.NetworkPolicyPeer) (labels string) {
		for _, p := range peers {
			require.Nil(t, p.IPBlock)
			if p.NamespaceSelector != nil {
				require.NotEmpty(t, p.NamespaceSelector.MatchLabels, "every namespace")
				labels += "namespace " + strings.Join(slices.Sorted(maps.Keys(p.NamespaceSelector.MatchLabels)), " ")
			}
			if p.PodSelector != nil {
				require.NotEmpty(t, p.PodSelector.MatchLabels, "every pod")
				labels += "pod " + strings.Join(slices.Sorted(maps.Values(p.PodSelector.MatchLabels)), " ")
			}
		}
		return labels
	}
	cluster := readCluster(t)
	in, out := map[string][]int32{}, map[string][]int32{}
	for _, p := range cluster.policies {
		for _, rule := range p.Spec.Ingress {
			in[p.Name+" from "+said(rule.From)] = ports(rule.Ports)
		}
		for _, rule := range p.Spec.Egress {
			out[p.Name+" to "+said(rule.To)] = ports(rule.Ports)
		}
	}
	var centre []int32
	for _, s := range cluster.services {
		if s.Name == "centre" {
			for _, p := range s.Spec.Ports {
				centre = append(centre, p.Port)
			}
		}
	}
	require.Equal(t, map[string][]int32{
		"centre from pod regedge-edge":                        centre,
		"centre from namespace regedge.example.org/operators": {8081},
		"edge from ": {8080},
		"edge from namespace regedge.example.org/monitoring": {9090},
	}, in)
	const names = "namespace kubernetes.io/metadata.namepod kube-dns"
	require.Equal(t, map[string][]int32{
		"centre to ":                 {443, 465, 587}, // webhooks and mail
		"centre to " + names:         {53, 53},
		"edge to pod regedge-centre": centre,
		"edge to " + names:           {53, 53},
	}, out)
}

// TestAPodRunsAsItsImage: as the user that owns the state, with a folder for what lasts no longer than it, whose memory is
// limited; and nobody asks without a token for metrics that need one.
func TestAPodRunsAsItsImage(t *testing.T) {
	for _, set := range readCluster(t).sets {
		pod := set.Spec.Template.Spec
		require.EqualValues(t, 65532, *pod.SecurityContext.RunAsUser, set.Name)
		require.EqualValues(t, 65532, *pod.SecurityContext.RunAsGroup, set.Name)
		for _, v := range pod.Volumes {
			if v.EmptyDir != nil && v.EmptyDir.Medium == core.StorageMediumMemory {
				require.NotNil(t, v.EmptyDir.SizeLimit, "%s/%s", set.Name, v.Name)
			}
		}
		scraped := "false"
		for _, c := range pod.Containers {
			tmp := slices.IndexFunc(c.VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath == "/tmp" })
			require.GreaterOrEqual(t, tmp, 0, "%s: HOME is /tmp", c.Name)
			require.LessOrEqual(t, c.ReadinessProbe.PeriodSeconds, int32(10), "%s: no lookups come soon after it is not ready", c.Name)
			if flags(c.Args)["metrics"] != "" {
				scraped = "true"
			}
		}
		require.Equal(t, scraped, set.Spec.Template.Annotations["prometheus.io/scrape"], set.Name)
	}
}
