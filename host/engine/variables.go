package engine

// The case undefined of the variant error of fermyon:spin/variables.
const variableUndefined = 1

// variableImports are the functions of fermyon:spin/variables.
func variableImports() []function {
	return []function{define(spinVariables, "get", "iii:", variableGet)}
}

// variableGet is get: (string) -> result<string, error>.
func variableGet(i *instance, stack []uint64) {
	value, ok := i.engine.config.Variables[string(i.text(uint32(stack[0]), uint32(stack[1])))]
	if !ok {
		ptr, size := i.lower("no such variable")
		out := i.out(uint32(stack[2]), 16, 4)
		put32(out, 0, 1)
		put32(out, 4, variableUndefined)
		put32(out, 8, ptr)
		put32(out, 12, size)
		return
	}
	ptr, size := i.lowerText(value)
	out := i.out(uint32(stack[2]), 16, 4)
	put32(out, 0, 0)
	put32(out, 4, ptr)
	put32(out, 8, size)
}
