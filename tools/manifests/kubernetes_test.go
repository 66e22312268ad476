package manifests

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// cluster is what the manifests in deploy/kubernetes declare.
type cluster struct {
	sets     []apps.StatefulSet
	services []core.Service
	policies []network.NetworkPolicy
	secrets  map[string]core.Secret
}

// readCluster decodes all manifests, and fails for a field that Kubernetes does not know.
func readCluster(t *testing.T) *cluster {
	t.Helper()
	files, err := filepath.Glob("../../deploy/kubernetes/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	c := &cluster{secrets: map[string]core.Secret{}}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		documents := goyaml.NewDecoder(bytes.NewReader(content))
		for {
			var document any
			err := documents.Decode(&document) // resolves anchors
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			text, err := yaml.Marshal(document)
			require.NoError(t, err)
			c.add(t, file, text)
		}
	}
	return c
}

func (c *cluster) add(t *testing.T, file string, text []byte) {
	t.Helper()
	var kind struct{ APIVersion, Kind string }
	require.NoError(t, yaml.Unmarshal(text, &kind))
	strict := func(to any) { t.Helper(); require.NoError(t, yaml.UnmarshalStrict(text, to), file) }
	switch kind.APIVersion + " " + kind.Kind {
	case "apps/v1 StatefulSet":
		var s apps.StatefulSet
		strict(&s)
		c.sets = append(c.sets, s)
	case "v1 Service":
		var s core.Service
		strict(&s)
		c.services = append(c.services, s)
	case "networking.k8s.io/v1 NetworkPolicy":
		var p network.NetworkPolicy
		strict(&p)
		c.policies = append(c.policies, p)
	case "v1 Secret":
		var s core.Secret
		strict(&s)
		c.secrets[s.Name] = s
	default:
		require.Fail(t, "a manifest of another kind", "%s: %s %s", file, kind.APIVersion, kind.Kind)
	}
}

func TestKubernetesKnowsEveryField(t *testing.T) {
	c := readCluster(t)
	require.Len(t, c.sets, 2)
	require.NotEmpty(t, c.services)
	require.Len(t, c.policies, 3)
	var wrong apps.StatefulSet
	require.Error(t, yaml.UnmarshalStrict([]byte("spec: {replica: 1}"), &wrong), "the check notices a field that is not one")
}

// TestContainersAreConfined: no root, nothing to write but the volumes, no rights, probes and limits.
func TestContainersAreConfined(t *testing.T) {
	for _, set := range readCluster(t).sets {
		pod := set.Spec.Template.Spec
		require.EqualValues(t, 1, *set.Spec.Replicas, "a node has one state")
		require.True(t, *pod.SecurityContext.RunAsNonRoot)
		require.Equal(t, core.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
		require.NotNil(t, pod.SecurityContext.FSGroup, set.Name)
		require.Equal(t, *pod.SecurityContext.RunAsGroup, *pod.SecurityContext.FSGroup, "%s: it may write its volume and read its secrets", set.Name)
		require.False(t, *pod.AutomountServiceAccountToken)
		require.False(t, *pod.EnableServiceLinks, "they would set REGEDGE_… variables")
		for _, v := range pod.Volumes {
			if v.Secret != nil {
				require.EqualValues(t, 0o440, *v.Secret.DefaultMode, "%s/%s", set.Name, v.Name)
			}
		}
		for _, c := range pod.Containers {
			name := set.Name + "/" + c.Name
			require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, name)
			require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, name)
			require.Equal(t, []core.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, name)
			require.NotNil(t, c.StartupProbe, name)
			require.NotNil(t, c.LivenessProbe, name)
			require.NotNil(t, c.ReadinessProbe, name)
			if c.ReadinessProbe.HTTPGet != nil {
				require.Equal(t, "/healthz", c.StartupProbe.HTTPGet.Path, name)
				require.Equal(t, "/healthz", c.LivenessProbe.HTTPGet.Path, "%s: one that waits for others is not killed", name)
				require.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path, name)
				require.EqualValues(t, 3, c.ReadinessProbe.TimeoutSeconds, "%s: longer than readiness takes, and not the second by default", name)
			}
			require.NotZero(t, c.Resources.Limits.Memory().Value(), name)
			require.NotZero(t, c.Resources.Requests.Cpu().MilliValue(), name)
			for _, variable := range c.Env {
				if variable.Name == "GOMEMLIMIT" {
					limit := resource.MustParse(strings.TrimSuffix(variable.Value, "B"))
					require.Negative(t, limit.Cmp(*c.Resources.Limits.Memory()), "%s: it collects before it is killed", name)
				}
			}
		}
	}
}

// TestOnlyWhoNeedsItReachesAPod: nothing does but what a policy lets in, which is anybody for lookups alone.
func TestOnlyWhoNeedsItReachesAPod(t *testing.T) {
	both := []network.PolicyType{network.PolicyTypeIngress, network.PolicyTypeEgress}
	open := map[string][]int32{}
	for _, p := range readCluster(t).policies {
		require.ElementsMatch(t, both, p.Spec.PolicyTypes, p.Name)
		if p.Name == "nothing" {
			require.Empty(t, p.Spec.PodSelector.MatchLabels)
			require.Empty(t, p.Spec.Ingress)
			require.Empty(t, p.Spec.Egress)
			continue
		}
		for _, rule := range p.Spec.Ingress {
			require.NotEmpty(t, rule.Ports, p.Name)
			for _, port := range rule.Ports {
				if len(rule.From) == 0 {
					open[p.Name] = append(open[p.Name], port.Port.IntVal)
				}
			}
		}
		for _, rule := range p.Spec.Egress {
			require.NotEmpty(t, rule.Ports, p.Name)
		}
	}
	require.Equal(t, map[string][]int32{"edge": {8080}}, open)
}

// TestReferencesLeadSomewhere: volumes, secrets, the files in them, ports, and selectors.
func TestReferencesLeadSomewhere(t *testing.T) {
	cluster := readCluster(t)
	for _, set := range cluster.sets {
		pod := set.Spec.Template
		volumes := map[string]*core.SecretVolumeSource{}
		for _, v := range pod.Spec.Volumes {
			volumes[v.Name] = v.Secret
		}
		for _, v := range set.Spec.VolumeClaimTemplates {
			volumes[v.Name] = nil
		}
		require.Subset(t, pod.Labels, set.Spec.Selector.MatchLabels)
		for _, c := range pod.Spec.Containers {
			for _, m := range c.VolumeMounts {
				secret, ok := volumes[m.Name]
				require.True(t, ok, "%s mounts %s", c.Name, m.Name)
				if secret != nil {
					cluster.filesAreThere(t, c.Args, m.MountPath, secret.SecretName)
				}
			}
			for _, from := range c.EnvFrom {
				require.Contains(t, cluster.secrets, from.SecretRef.Name)
			}
		}
	}
	for _, s := range cluster.services {
		require.NotEmpty(t, cluster.selected(s.Spec.Selector), "service %s", s.Name)
	}
	for _, p := range cluster.policies {
		require.NotEmpty(t, cluster.selected(p.Spec.PodSelector.MatchLabels), "policy %s", p.Name)
	}
}

// filesAreThere: each file below a mount that arguments name is a key of the secret.
func (c *cluster) filesAreThere(t *testing.T, args []string, mount, secret string) {
	t.Helper()
	require.Contains(t, c.secrets, secret)
	for _, arg := range args {
		if _, file, ok := strings.Cut(arg, "="+mount+"/"); ok {
			require.Contains(t, c.secrets[secret].StringData, file, "secret %s", secret)
		}
	}
	for key := range c.secrets[secret].StringData {
		require.NotContains(t, []string{"ca.key", "registry.key", "access.key", "registry-replica.key", "access-replica.key"}, key, "a key that signs")
	}
}

// selected lists the sets whose pods have all labels.
func (c *cluster) selected(labels map[string]string) (names []string) {
	for _, set := range c.sets {
		all := true
		for key, value := range labels {
			all = all && set.Spec.Template.Labels[key] == value
		}
		if all {
			names = append(names, set.Name)
		}
	}
	return names
}

// TestTheProgramKnowsEveryFlag that a container gives it, also those of its probes.
func TestTheProgramKnowsEveryFlag(t *testing.T) {
	for _, set := range readCluster(t).sets {
		for _, c := range set.Spec.Template.Spec.Containers {
			require.Equal(t, []string{"/usr/local/bin/regedge"}, c.Command)
			knows(t, c.Args)
			for _, p := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if p.Exec != nil {
					require.Equal(t, "/usr/local/bin/regedge", p.Exec.Command[0])
					knows(t, p.Exec.Command[1:])
				}
			}
		}
	}
}

// knows holds that the help of a command has each flag of its arguments.
func knows(t *testing.T, args []string) {
	t.Helper()
	help := regedge(t, args[0], "--help")
	for _, arg := range args[1:] {
		flag, _, _ := strings.Cut(arg, "=")
		require.Regexp(t, flag+`\b`, help, "regedge %s", args[0])
	}
}
