// Package manifests checks the manifests in deploy against the published types and schemas of Kubernetes
// and of compose files, and against the program that they run.
package manifests
