"""Expressions with the answers of Kubernetes 1.37.

The unit tests compare Muster with this table, and the end-to-end tests compare the table with a real kube-apiserver.
"""

from __future__ import annotations

# Expressions that are true; none of them uses a variable.
TRUE = (
    # The language
    "1 + 2 == 3",
    "1 < 2.5 && 2u > 1 && 1.5 <= 2",
    "dyn(1) == 1.0",
    "[1, 2, 3].exists(x, x > 2) && [1, 2].all(x, x > 0) && [1, 2].exists_one(x, x == 1)",
    "[1, 2].map(x, x * 2) == [2, 4] && [1, 2].filter(x, x > 1) == [2]",
    "[1, 2].all(i, v, i < v) && {'a': 1}.exists(k, v, k == 'a' && v == 1)",
    "[1, 2].transformList(i, v, i + v) == [1, 3]",
    "{'a': 1, 'b': 2}.transformMap(k, v, v + 1) == {'a': 2, 'b': 3}",
    "true || 1 / 0 == 0",
    "!(false && 1 / 0 == 0)",
    "has({'a': 1}.a) && !has({'a': 1}.b)",
    "{'a': 1}[?'b'].orValue(2) == 2 && {'a': 1}.?a.value() == 1",
    "optional.of(1).hasValue() && !optional.none().hasValue()",
    "optional.none().or(optional.of(2)).value() == 2",
    "type(1) == int && type('') == string",
    "timestamp('2026-01-02T03:04:05Z').getFullYear() == 2026",
    "duration('1h30m') == duration('90m')",
    "timestamp('2026-01-01T00:00:00Z') + duration('24h') == timestamp('2026-01-02T00:00:00Z')",
    # Strings
    "'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'abc'.contains('b')",
    "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'",
    "'Ab'.lowerAscii() == 'ab' && 'Ab'.upperAscii() == 'AB'",
    "'abcd'.substring(1, 3) == 'bc' && 'abc'.charAt(1) == 'b' && ' a '.trim() == 'a'",
    "'abab'.indexOf('b') == 1 && 'abab'.lastIndexOf('b') == 3",
    "'a-b'.replace('-', '+') == 'a+b'",
    "'%s is %d'.format(['a', 1]) == 'a is 1'",
    "strings.quote('a') == '\"a\"'",
    "'abc'.matches('^[a-c]+$')",
    # Regular expressions
    "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]') == ''",
    "'a1b2'.findAll('[0-9]') == ['1', '2'] && 'a1b2'.findAll('[0-9]', 1) == ['1']",
    "'abc'.find('(a)(b)') == 'ab'",
    # Lists and sets
    "[1, 2, 3].isSorted() && !['b', 'a'].isSorted()",
    "[1, 2].sum() == 3 && [1.5, 2.5].sum() == 4.0 && [duration('1s'), duration('2s')].sum() == duration('3s')",
    "[3, 1].min() == 1 && ['a', 'b'].max() == 'b'",
    "[1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2 && [1].indexOf(5) == -1",
    "sets.contains([1, 2], [1]) && sets.equivalent([1, 2], [2, 1]) && sets.intersects([1], [1, 2])",
    "[3, 1].sort() == [1, 3] && [[1], [2]].flatten() == [1, 2] && [1, 1].distinct() == [1]",
    "[1, 2, 3].slice(1, 2) == [2] && [1, 2].reverse() == [2, 1] && lists.range(2) == [0, 1]",
    "[1, 2].first().value() == 1 && [1, 2].last().value() == 2",
    # Quantities
    "quantity('1000m') == quantity('1') && quantity('1Gi').isGreaterThan(quantity('1G'))",
    "quantity('1.5').add(quantity('500m')) == quantity('2') && quantity('3').sub(1) == quantity('2')",
    "quantity('1k').asInteger() == 1000 && !quantity('1500m').isInteger()",
    "sign(quantity('-1')) == -1 && quantity('1').compareTo(quantity('2')) == -1",
    "isQuantity('20Mi') && !isQuantity('20Mo') && quantity('50k').asApproximateFloat() == 50000.0",
    # Versions
    "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
    "semver('1.0.0').isGreaterThan(semver('1.0.0-rc.1')) && semver('1.0.0-2').isLessThan(semver('1.0.0-10'))",
    "isSemver('1.0.0') && !isSemver('v1.0') && isSemver('v1.0', true)",
    "semver('v01.01', true).compareTo(semver('1.1.0')) == 0",
    # Addresses
    "isIP('::1') && !isIP('1.2.3') && ip('192.168.0.1').family() == 4",
    "string(ip('::1')) == '::1' && ip.isCanonical('::1') && !ip.isCanonical('::0:1')",
    "ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified() && ip('8.8.8.8').isGlobalUnicast()",
    "ip('224.0.0.1').isLinkLocalMulticast() && ip('169.254.1.1').isLinkLocalUnicast()",
    "ip('10.0.0.1').isGlobalUnicast()",
    "cidr('10.0.0.0/8').containsIP('10.1.1.1') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
    "cidr('192.168.1.5/24').masked() == cidr('192.168.1.0/24') && cidr('10.0.0.0/8').prefixLength() == 8",
    "cidr('192.168.1.5/24').ip() == ip('192.168.1.5') && isCIDR('::/0') && !isCIDR('10.0.0.0')",
    # URLs
    "url('https://a.b:8443/p/q?x=1&x=2&y=').getScheme() == 'https'",
    "url('https://a.b:8443/').getHost() == 'a.b:8443' && url('https://[::1]:80/').getHostname() == '::1'",
    "url('https://a.b/').getPort() == '' && url('https://a.b:80/').getPort() == '80'",
    "url('https://a.b/with space').getEscapedPath() == '/with%20space'",
    "url('https://a.b/?x=1&x=2').getQuery()['x'] == ['1', '2']",
    "isURL('https://a.b') && isURL('/path') && !isURL('../relative') && !isURL('nope')",
    # Named formats
    "!format.dns1123Label().validate('ab').hasValue() && format.dns1123Label().validate('A').hasValue()",
    "format.named('uuid').value().validate('nope').hasValue() && !format.named('unknown').hasValue()",
    "format.dns1035Label().validate('1a').hasValue() && !format.dns1123LabelPrefix().validate('a-').hasValue()",
    "!format.uri().validate('http://a').hasValue() && !format.date().validate('2026-01-02').hasValue()",
    "!format.datetime().validate('2026-01-02T03:04:05Z').hasValue() && format.byte().validate('!').hasValue()",
    "!format.labelValue().validate('a_b').hasValue() && !format.qualifiedName().validate('a.b/c').hasValue()",
    "!format.dns1123Subdomain().validate('a.b').hasValue()",
)

# Expressions that must be refused, with the first complaint.
REFUSED = {
    "1 +": "Syntax error",
    "nope == 1": "undeclared reference to 'nope'",
    "nope(1) == 1": "undeclared reference to 'nope'",
    "1 == 'a'": "found no matching overload for '_==_' applied to '(int, string)'",
    "1 == 1.0": "found no matching overload for '_==_' applied to '(int, double)'",
    "quantity('1') < quantity('2')": "found no matching overload for '_<_'",
    "semver('1.0.0') == quantity('1')": "found no matching overload for '_==_'",
    "[1, 'a'] == []": "expected type 'int' but found 'string'",
    "{'a': 1, 'b': 'c'} == {}": "expected type 'int' but found 'string'",
    "'a'.matches('(')": "invalid matches argument",
    "duration('1x') == duration('1s')": "invalid duration argument",
    "timestamp('yesterday') == timestamp('2026-01-01T00:00:00Z')": "invalid timestamp argument",
    "'a'.sum() == 1": "found no matching overload for 'sum'",
    "'a'.reverse() == 'a'": "found no matching overload for 'reverse'",
    "regex.extract('a', 'a').hasValue()": "undeclared reference to 'regex'",
    "math.greatest(1, 2) == 2": "undeclared reference to 'math'",
}

# Expressions without a value, with what Kubernetes says of them.
FAILING = {
    "1 / 0 == 0": "division by zero",
    "[1][2] == 1": "index out of bounds: 2",
    "{'a': 1}.b == 1": "no such key: b",
    "dyn({'a': 1})['b'] == 1": "no such key: b",
    "dyn('a') + dyn(1) == 'a1'": "no such overload",
    "quantity('1.5').asInteger() == 1": "cannot convert value to integer",
    "9223372036854775807 + 1 == 0": "integer overflow",
    "[0].filter(x, x > 0).min() == 0": "min called on empty list",
}
