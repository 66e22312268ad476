package names

// synonymous lists words with the same meaning: numbers with their ordinals and Roman numerals of two letters and more,
// old and new names of cities, and brand spellings that the sound of a word does not cover.
var synonymous = [...][]string{
	{"1", "one", "1st", "first"}, {"2", "two", "2nd", "second", "ii"}, {"3", "three", "3rd", "third", "iii"},
	{"4", "four", "4th", "fourth", "iv"}, {"5", "five", "5th", "fifth"}, {"6", "six", "6th", "sixth", "vi"},
	{"7", "seven", "7th", "seventh", "vii"}, {"8", "eight", "8th", "eighth", "viii"}, {"9", "nine", "9th", "ninth", "ix"},
	{"10", "ten", "10th", "tenth"}, {"100", "hundred"},
	{"bombay", "mumbai"}, {"madras", "chennai"}, {"calcutta", "kolkata"}, {"baroda", "vadodara"}, {"poona", "pune"},
	{"pondicherry", "puducherry", "pondy"}, {"bangalore", "bengaluru"}, {"gurgaon", "gurugram"}, {"simla", "shimla"},
	{"orissa", "odisha"}, {"om", "aum"}, {"doctor", "dr"},
	{"night", "nite"}, {"light", "lite"}, {"bright", "brite"}, {"right", "rite"}, {"express", "xpress"}, {"extreme", "xtreme"},
}

// shortened lists usual abbreviations, each with the words that it may stand for. Unlike those of long, which are
// certain, they are not expanded in names. Others are recognised by their letters (see abbreviates).
var shortened = [...][]string{
	{"inds", "industries"}, {"engrs", "engineers"}, {"svcs", "services"}, {"soln", "solutions"},
	{"const", "construction", "constructions"}, {"fpc", "producer"}, {"fpo", "producer"},
}

// synonyms returns the words that a typed word may stand for; nil if only for itself.
func synonyms(typed string) []string {
	for _, words := range synonymous {
		if has(words, typed) {
			return words
		}
	}
	for _, words := range shortened {
		if words[0] == typed {
			return words
		}
	}
	return nil
}
